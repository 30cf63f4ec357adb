/** The provider account that created what a native response refers to; stored with the charge of its call. */
export interface Provenance {
  /** Tag of the key with which the settled call used its channel. */
  readonly keyTag: string
  /** Response that clients may refer to; null if the upstream does not store it. */
  readonly response: ProvenResponse | null
  /** Hashes of encrypted reasoning, which only this account can decrypt. */
  readonly reasoning: readonly string[]
}

/** A response as its upstream stores it; the fields are those of `StoredResponse`. */
export interface ProvenResponse {
  readonly id: string
  readonly upstreamId: string
  readonly tokens: number
  readonly previousId: string | null
}
