import type { ConversionProtocol } from './protocols.ts'

/** Web search that a provider ran while it replied, as far as several dialects can express it. */
export interface SearchPart {
  readonly kind: 'search'
  /**
   * Dialect of the provider that ran the search. In messages, the opaque parts before it contain what that
   * provider wants back.
   */
  readonly protocol: ConversionProtocol
  /** Empty if the provider does not report it. */
  readonly query: string
  /** Pages that were found; none if the provider does not report them. */
  readonly pages: readonly FoundPage[]
  readonly isFailed: boolean
}

/** Web page that a search found. */
export interface FoundPage {
  readonly url: string
  /** Empty if the provider does not report it. */
  readonly title: string
}
