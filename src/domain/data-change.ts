/**
 * Names data that a node has changed, so that other nodes remove it from their caches and read it again. It
 * contains no values.
 */
export type DataChange =
  | { readonly of: 'tokens'; readonly ids: readonly number[] }
  | { readonly of: 'user'; readonly id: number }
  /** A new API key, which other nodes may have cached as unknown. */
  | { readonly of: 'keys' }
  /** Channels, options, groups or prices have changed. */
  | { readonly of: 'settings' }
  /** Anything may have changed, so that all caches are emptied. */
  | { readonly of: 'anything' }
