/** What an answer states about the prompt cache, as it came: its id, and the provider's verdict. */
export interface Diagnosis {
  readonly id: unknown
  readonly verdict: unknown
}

type Fields = Readonly<Record<string, unknown>>

/** The diagnosis in a message, which a stream has in its first event. */
export function messageDiagnosis({ id, diagnostics }: Fields): Diagnosis {
  return { id, verdict: diagnostics }
}

/** The diagnosis in a response. Events before the last one have the id alone. */
export function responseDiagnosis({ id, prompt_cache_diagnostics: verdict }: Fields): Diagnosis {
  return { id, verdict }
}

/** The verdict as a member of a reply; nothing if there is none. */
export function verdictMember(verdict: unknown): { readonly cacheVerdict?: object } {
  return typeof verdict === 'object' && verdict !== null ? { cacheVerdict: verdict } : {}
}

/** Maximum length of a verdict that is kept, in characters. */
const MAX_VERDICT_LENGTH = 2_048
/** Ids of responses that may be sent back. */
const ID = /^[\w.-]{1,200}$/

/** The verdict as JSON; empty if there is none, or if it is too long. */
export function verdictText(diagnosis: Diagnosis | undefined): string {
  const { verdict } = diagnosis ?? {}
  if (typeof verdict !== 'object' || verdict === null) return ''
  const text = JSON.stringify(verdict)
  return text.length > MAX_VERDICT_LENGTH ? '' : text
}

/** The id with which a later request refers to the answer; empty if it has none. */
export function diagnosedId(diagnosis: Diagnosis | undefined): string {
  const { id } = diagnosis ?? {}
  return typeof id === 'string' && ID.test(id) ? id : ''
}
