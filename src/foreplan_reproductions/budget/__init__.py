"""LOSS and GAIN: Sakellariou, Zhao, Tsiakkouri and Dikaiakos, section 4; and runs in a budget."""
