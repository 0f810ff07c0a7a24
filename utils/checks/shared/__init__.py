"""Parts of right answers that several exercises share, and the mistakes in them."""
