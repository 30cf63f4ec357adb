/** The account that made what a native response leaves behind; stored with the charge of its call. */
export interface Provenance {
  /** Tag of the key that the settlement's channel was called with. */
  readonly keyTag: string
  /** Response that clients may refer to; null = the upstream does not store it. */
  readonly response: ProvenResponse | null
  /** Hashes of encrypted reasoning, which only this account can read. */
  readonly reasoning: readonly string[]
}

/** A response as its upstream stores it; fields as in `StoredResponse`. */
export interface ProvenResponse {
  readonly id: string
  readonly upstreamId: string
  readonly tokens: number
  readonly previousId: string | null
}
