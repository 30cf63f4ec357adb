/**
 * What an answer states about the prompt cache: its id, and the provider's explanation (verdict) of what was
 * not cached. Both are unchecked.
 */
export interface CacheDiagnosis {
  readonly id: unknown
  readonly verdict: unknown
}

type Fields = Readonly<Record<string, unknown>>

/** Reads the diagnosis in a messages response. In a stream it is in the first event. */
export function messageDiagnosis({ id, diagnostics }: Fields): CacheDiagnosis {
  return { id, verdict: diagnostics }
}

/** Reads the diagnosis in a responses response. In a stream, events before the last one have only the id. */
export function responseDiagnosis({ id, prompt_cache_diagnostics: verdict }: Fields): CacheDiagnosis {
  return { id, verdict }
}

/**
 * Returns the provider's explanation (verdict) as an object to spread into a reply; an empty object if there
 * is none.
 */
export function cacheVerdictMember(verdict: unknown): { readonly cacheVerdict?: object } {
  return typeof verdict === 'object' && verdict !== null ? { cacheVerdict: verdict } : {}
}

/** Maximum length, in characters, of a provider's explanation (verdict) that is stored. */
const MAX_VERDICT_LENGTH = 2_048
/** Matches ids of responses that may be sent back to the provider. */
const ID = /^[\w.-]{1,200}$/

/** The provider's explanation (verdict) as JSON; empty if there is none or it is too long. */
export function cacheVerdictText(diagnosis: CacheDiagnosis | undefined): string {
  const { verdict } = diagnosis ?? {}
  if (typeof verdict !== 'object' || verdict === null) return ''
  const text = JSON.stringify(verdict)
  return text.length > MAX_VERDICT_LENGTH ? '' : text
}

/** The id by which a later request refers to this response; empty if there is none. */
export function responseIdForDiagnosis(diagnosis: CacheDiagnosis | undefined): string {
  const { id } = diagnosis ?? {}
  return typeof id === 'string' && ID.test(id) ? id : ''
}
