/** Signed parts of a reply, stored because the client's next turn returns the reply without them. */
export interface KeptSignature {
  /** HMAC of the owner and of the part of the reply to which the signature belongs. */
  readonly hash: string
  /** JSON text: the account that signed, and what it signed. Encrypted in the database. */
  readonly content: string
}
