import type { ConversionProtocol } from '../domain/protocols.ts'

/** Web search that a provider ran while it replied, as far as several dialects can tell it. */
export interface SearchPart {
  readonly kind: 'search'
  /**
   * Dialect of the provider that ran it. In messages, opaque parts in front of it hold what that provider
   * wants back.
   */
  readonly protocol: ConversionProtocol
  /** Empty if the provider states none. */
  readonly query: string
  /** Pages that were found; none if the provider does not state them. */
  readonly pages: readonly FoundPage[]
  readonly isFailed: boolean
}

/** Web page that a search found. */
export interface FoundPage {
  readonly url: string
  /** Empty if the provider states none. */
  readonly title: string
}
