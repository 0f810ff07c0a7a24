"""Answers to the exercises of notebook 04."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from bank import right, wrong


@right("4.1")
def attention_formula(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@right("4.1")
def attention_einsum(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query, key) * key.size(-1) ** -0.5
    weights = scores.softmax(-1)
    return torch.einsum("...ts,...sv->...tv", weights, value), weights


@right("4.1")
def attention_library(query, key, value):
    weights = F.softmax(query.double() @ key.double().mT / key.shape[-1] ** 0.5, -1)
    return F.scaled_dot_product_attention(query, key, value), weights.float()


@right("4.1")
def attention_scaled_queries(query, key, value):
    query = query / torch.tensor(query.shape[-1]).sqrt()
    scores = (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1)
    exps = (scores - scores.max(-1, keepdim=True)[0]).exp()
    weights = exps / exps.sum(-1, keepdim=True)
    return [weights @ value, weights]


@wrong("4.1", "scale-missing")
def attention_unscaled(query, key, value):
    weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
    return weights @ value, weights


@wrong("4.1", "divided-by-width")
def attention_over_d(query, key, value):
    weights = F.softmax(query @ key.transpose(-2, -1) / query.shape[-1], dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-multiplied")
def attention_times_root(query, key, value):
    weights = F.softmax(query @ key.transpose(-2, -1) * key.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-of-keys")
def attention_root_of_keys(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(key.shape[-2]), dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-of-values")
def attention_root_of_values(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(value.shape[-1]), dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-after-softmax")
def attention_late_scale(query, key, value):
    weights = F.softmax(query @ key.mT, dim=-1) / math.sqrt(key.shape[-1])
    return weights @ value, weights


@wrong("4.1", "maximum-not-subtracted")
def attention_bare_exponentials(query, key, value):
    exps = torch.exp(query @ key.mT / math.sqrt(key.shape[-1]))
    weights = exps / exps.sum(dim=-1, keepdim=True)
    return weights @ value, weights


@wrong("4.1", "scale-halves")
def attention_precedence(query, key, value):
    weights = F.softmax(query @ key.mT / key.shape[-1] ** 1 / 2, dim=-1)
    return weights @ value, weights


@wrong("4.1", "softmax-over-queries")
def attention_columns(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(key.shape[-1]), dim=-2)
    return weights @ value, weights


@wrong("4.1", "transpose-of-all-axes")
def attention_dot_t(query, key, value):
    weights = F.softmax(query @ key.T / math.sqrt(key.shape[-1]), dim=-1)
    return weights @ value, weights


@wrong("4.1", "keys-times-queries")
def attention_turned_round(query, key, value):
    weights = F.softmax(key @ query.mT / math.sqrt(key.shape[-1]), dim=-1)
    return weights @ value, weights


@wrong("4.1", "weights-missing")
def attention_output_alone(query, key, value):
    return F.scaled_dot_product_attention(query, key, value)


@wrong("4.1", "output-and-weights-swapped")
def attention_swapped(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(key.shape[-1]), dim=-1)
    return weights, weights @ value


@wrong("4.1", "softmax-missing")
def attention_raw(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    return scores @ value, scores


@wrong("4.1", "output-missing")
def attention_weights_alone(query, key, value):
    return torch.softmax(query @ key.mT / math.sqrt(key.shape[-1]), dim=-1)


@wrong("4.1", "scale-of-tokens")
def attention_root_of_queries(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(query.size(-2)), dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-of-first-axis")
def attention_root_of_len(query, key, value):
    weights = torch.softmax(query @ key.mT / len(query) ** 0.5, dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-of-second-axis")
def attention_root_of_shape_1(query, key, value):
    d_k = query.shape[1]
    weights = torch.softmax(query @ key.mT / d_k**0.5, dim=-1)
    return weights @ value, weights


@wrong("4.1", "scale-multiplied")
def attention_negative_power(query, key, value):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** -0.5, dim=-1)
    return weights @ value, weights


@wrong("4.1", "scores-for-weights")
def attention_scores_returned(query, key, value):
    attn_scores = query @ key.mT / math.sqrt(key.shape[-1])
    attn_weights = torch.softmax(attn_scores, dim=-1)
    return attn_weights @ value, attn_scores


@wrong("4.1", "weights-turned")
def attention_columns_are_queries(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(key.shape[-1]), dim=-1)
    return weights @ value, weights.transpose(-2, -1)


@wrong("4.1", "axis-left-open")
def attention_dim_none(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(key.shape[-1]))
    return weights @ value, weights


@wrong("4.1", "fixed-axes")
def attention_transpose_0_1(query, key, value):
    weights = F.softmax(query @ key.transpose(0, 1) / key.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@wrong("4.1", "fixed-axes")
def attention_transpose_1_2(query, key, value):
    weights = F.softmax(query @ key.transpose(1, 2) / key.shape[-1] ** 0.5, dim=-1)
    return weights @ value, weights


@wrong("4.1", "future-hidden")
def attention_causal(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])
    future = torch.ones(query.shape[-2], key.shape[-2]).triu(1).bool()
    weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
    return weights @ value, weights


@wrong("4.1", "compares-angles")
def attention_cosine(query, key, value):
    norms = query.norm(dim=-1)[..., None] * key.norm(dim=-1)[..., None, :]
    weights = torch.softmax(query @ key.mT / norms, dim=-1)
    return weights @ value, weights


@wrong("4.1", "keys-for-values")
def attention_of_keys(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(key.shape[-1]), dim=-1)
    return weights @ key, weights


@wrong("4.1", "uniform-weights")
def attention_mean(query, key, value):
    weights = torch.softmax(torch.zeros(*query.shape[:-1], key.shape[-2]), dim=-1)
    return weights @ value, weights


@wrong("4.1", "input-changed")
def attention_scaled_in_place(query, key, value):
    query /= math.sqrt(query.shape[-1])
    weights = torch.softmax(query @ key.mT, dim=-1)
    return weights @ value, weights


@wrong("4.1", "returns-nothing")
def attention_without_return(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(query.shape[-1]), dim=-1)
    output = weights @ value
    print(output.shape, weights.shape)


@wrong("4.1", "wrong-signature")
def attention_of_x(x):
    weights = torch.softmax(x @ x.mT / math.sqrt(x.shape[-1]), dim=-1)
    return weights @ x, weights


@wrong("4.1", named=False)
def attention_whole_numbers(query, key, value):
    weights = torch.softmax(query @ key.mT // math.sqrt(query.shape[-1]), dim=-1)
    return weights @ value, weights


class Linears(nn.Module):
    """Three layers without bias; the answers below add their forward pass."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1) @ value


@wrong("4.1", "scale-missing")
def attention_unscaled_and_causal(query, key, value):
    scores = query @ key.mT
    future = torch.ones(scores.shape[-2:]).triu(1).bool()
    weights = torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
    return weights @ value, weights


@right("4.2")
class SelfAttentionLinear(Linears):
    pass


@right("4.2")
class SelfAttentionLibrary(Linears):
    def forward(self, x):
        return F.scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x)
        )


@right("4.2")
class SelfAttentionParameters(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        scores = (x @ self.W_query) @ (x @ self.W_key).mT
        return (scores / self.W_key.shape[1] ** 0.5).softmax(-1) @ (x @ self.W_value)


@wrong("4.2", "scale-missing")
class SelfAttentionUnscaled(Linears):
    def forward(self, x):
        weights = torch.softmax(self.W_query(x) @ self.W_key(x).transpose(-2, -1), -1)
        return weights @ self.W_value(x)


@wrong("4.2", "created-in-another-order")
class SelfAttentionKeyFirst(Linears):
    def __init__(self, d_in, d_out):
        nn.Module.__init__(self)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)


@wrong("4.2", "maximum-not-subtracted")
class SelfAttentionBareExponentials(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        exps = torch.exp(scores)
        return exps / exps.sum(dim=-1, keepdim=True) @ self.W_value(x)


@wrong("4.2", "scale-of-input-width")
class SelfAttentionInputWidth(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).transpose(-2, -1) / x.shape[-1] ** 0.5
        return torch.softmax(scores, -1) @ self.W_value(x)


@wrong("4.2", "values-not-projected")
class SelfAttentionRawValues(Linears):
    def forward(self, x):
        query, key = self.W_query(x), self.W_key(x)
        scores = query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5
        return torch.softmax(scores, -1) @ x


@wrong("4.2", "weights-not-registered")
class SelfAttentionPlainTensors(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.rand(d_in, d_out)
        self.W_key = torch.rand(d_in, d_out)
        self.W_value = torch.rand(d_in, d_out)

    def forward(self, x):
        scores = (x @ self.W_query) @ (x @ self.W_key).mT
        return (scores / self.W_key.shape[1] ** 0.5).softmax(-1) @ (x @ self.W_value)


@wrong("4.2", "shared-weights")
class SelfAttentionOneMatrix(Linears):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        self.W_query = self.W_key = self.W_value


@wrong("4.2", "unasked-bias")
class SelfAttentionBias(Linears):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        self.W_query = nn.Linear(d_in, d_out)


@wrong("4.2", "returns-a-tuple")
class SelfAttentionBoth(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        weights = torch.softmax(scores, -1)
        return weights @ self.W_value(x), weights


@wrong("4.2", "transpose-of-all-axes")
class SelfAttentionDotT(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).T / self.W_key.out_features**0.5
        return torch.softmax(scores, -1) @ self.W_value(x)


@wrong("4.2", "softmax-over-queries")
class SelfAttentionColumns(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        return torch.softmax(scores, -2) @ self.W_value(x)


@wrong("4.2", "super-init-missing")
class SelfAttentionNoSuper(nn.Module):
    def __init__(self, d_in, d_out):
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)


@wrong("4.2", "projection-missing")
class SelfAttentionOtherNames(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.q = nn.Linear(d_in, d_out, bias=False)
        self.k = nn.Linear(d_in, d_out, bias=False)
        self.v = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))


@wrong("4.2", "no-gradient")
class SelfAttentionNoGrad(Linears):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


@wrong("4.2", "no-gradient")
class SelfAttentionDetached(Linears):
    def forward(self, x):
        query, key = self.W_query(x).detach(), self.W_key(x).detach()
        return F.scaled_dot_product_attention(query, key, self.W_value(x))


@wrong("4.2", "changes-in-training")
class SelfAttentionDropout(Linears):
    def __init__(self, d_in, d_out):
        super().__init__(d_in, d_out)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(super().forward(x))


@wrong("4.2", "weight-not-transposed")
class SelfAttentionWeight(Linears):
    def forward(self, x):
        query, key = x @ self.W_query.weight, x @ self.W_key.weight
        scores = query @ key.mT / key.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1) @ (x @ self.W_value.weight)


@wrong("4.2", "three-axes-only")
class SelfAttentionThreeAxes(Linears):
    def forward(self, x):
        B, T, D = x.shape
        scores = self.W_query(x) @ self.W_key(x).transpose(1, 2)
        weights = torch.softmax(scores / self.W_key.out_features**0.5, dim=-1)
        return weights @ self.W_value(x)


@wrong("4.2", "parameter-called")
class SelfAttentionCalled(SelfAttentionParameters):
    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        return F.scaled_dot_product_attention(query, key, value)


@wrong("4.2", "future-hidden")
class SelfAttentionCausal(Linears):
    def forward(self, x):
        return F.scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x), is_causal=True
        )


@wrong("4.2", "keys-for-values")
class SelfAttentionKeys(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        return torch.softmax(scores, dim=-1) @ self.W_key(x)


@wrong("4.2", "queries-for-keys")
class SelfAttentionQueriesTwice(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_query(x).mT / self.W_key.out_features**0.5
        return torch.softmax(scores, dim=-1) @ self.W_value(x)


@wrong("4.2", "divided-by-width")
class SelfAttentionOverWidth(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features
        return torch.softmax(scores, dim=-1) @ self.W_value(x)


@wrong("4.2", "softmax-missing")
class SelfAttentionRaw(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        return scores @ self.W_value(x)


@wrong("4.2", "weights-returned")
class SelfAttentionWeights(Linears):
    def forward(self, x):
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        return torch.softmax(scores, dim=-1)


@wrong("4.2", "modules-in-a-list")
class SelfAttentionList(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.projections = [nn.Linear(d_in, d_out, bias=False) for _ in range(3)]

    def forward(self, x):
        return F.scaled_dot_product_attention(*(p(x) for p in self.projections))


@wrong("4.2", "wrong-weight-shape")
class SelfAttentionTurned(Linears):
    def __init__(self, d_in, d_out):
        super().__init__(d_out, d_in)


@wrong("4.1", "reshape-for-transpose")
def attention_key_reshaped(query, key, value):
    *lead, num_keys, width = key.shape
    scores = query @ key.reshape(*lead, width, num_keys) / width**0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@wrong("4.1", "multiplied")
def attention_output_halved(query, key, value):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights @ value / 2, weights


@wrong("4.1", "samples-mixed")
def attention_of_the_other_samples_values(query, key, value):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights @ (value.flip(0) if value.dim() > 2 else value), weights
