/**
 * What one node changed, and the others must not go by any more. It says which, never what: they read that
 * themselves.
 */
export type Change =
  | { readonly of: 'tokens'; readonly ids: readonly number[] }
  | { readonly of: 'user'; readonly id: number }
  /** A key is there that was not: it may be remembered as unknown. */
  | { readonly of: 'keys' }
  /** Channels, options, groups or prices. */
  | { readonly of: 'settings' }
  /** Nobody knows what: everything may be. */
  | { readonly of: 'anything' }
