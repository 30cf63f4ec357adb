/** Parts of large kept contents; those without a row in `stored_responses` belong to no response. */
export interface ResponsePartsTable {
  response_id: string
  part: number
  /** Time of the latest attempt to store it. */
  created_ms: number
  /** Encrypted text. */
  content_cipher: string
}

/** Accounts that can read encrypted reasoning. */
export interface ReasoningOriginsTable {
  /** HMAC of the content and its owner. */
  hash: string
  channel: string
  key_tag: string
  expires_ms: number
}
