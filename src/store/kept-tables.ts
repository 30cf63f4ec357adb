/** Signed parts of replies, for turns that come back without them. */
export interface KeptSignaturesTable {
  user_id: number
  /** HMAC of the owner and the anchor: a tool call's id, or the text. */
  hash: string
  /** Encrypted JSON of the account and the parts. */
  content_cipher: string
  /** Time since which it is kept. */
  kept_ms: number
  expires_ms: number
}

/** Sums of what is kept for each user, changed in the transactions that change the rows. */
export interface KeptSumsTable {
  user_id: number
  bytes: number
}
