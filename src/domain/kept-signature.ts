/** Signed parts of a reply, as they are stored until their turn comes back without them. */
export interface KeptSignature {
  /** HMAC of the owner and of the anchor in the reply. */
  readonly hash: string
  /** JSON text: the account that signed, and what it signed. Encrypted in the database. */
  readonly content: string
}
