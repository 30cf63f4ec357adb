import { asRecord } from './json/record.ts'
import type { HiddenThinking, SentRequest } from './hidden-thinking.ts'

/** How one field of a request sets thinking: off, or on with a maximum number of tokens (`budget`). */
export type ThinkingSetting = { readonly kind: 'off' } | { readonly kind: 'on'; readonly budget?: number }

/** Names of fields that set thinking, in any protocol and at any server. */
const OF_THINKING = /think|reason|effort/i
/** Fields without settings of the model: the conversation, its tools, schemas, and what the caller notes. */
const WITHOUT_SETTINGS =
  /^(?:messages|inputs?|contents?|system.*|instructions|prompt.*|prediction|documents|tool.*|functions?|.*metadata|labels|variables|text|(?:response_?)?format|.*json|.*schema|properties|definitions|\$defs)$/i
/** Maximum depth at which a field that sets thinking is looked for in others. */
const MAX_LEVELS = 4
const OFF_WORDS = /^(?:|none|off|no|false|disabled?)$/i

/**
 * The thinking that a request switches on by any field, also within objects of settings; undefined if it switches
 * on none. The budget counts only if each of these fields has one, because a server may know one of
 * them alone.
 */
export function requestedThinking(sent: SentRequest): HiddenThinking | undefined {
  const settings: ThinkingSetting[] = []
  for (const name of sent.names())
    if (OF_THINKING.test(name) || sent.isObject(name)) collect(name, sent.value(name), MAX_LEVELS, settings)
  const on = settings.filter((one) => one.kind === 'on')
  if (on.length === 0) return undefined
  const budgets = on.flatMap(({ budget }) => budget ?? [])
  return { budget: budgets.length === on.length ? Math.max(...budgets) : undefined }
}

function collect(name: string, value: unknown, levels: number, settings: ThinkingSetting[]): void {
  if (OF_THINKING.test(name)) {
    const setting = settingOf(value)
    if (setting) settings.push(setting)
  } else if (levels > 0 && !WITHOUT_SETTINGS.test(name))
    for (const [inner, own] of Object.entries(asRecord(value) ?? {}))
      collect(inner, own, levels - 1, settings)
}

function settingOf(value: unknown): ThinkingSetting | undefined {
  if (value === undefined || value === null) return undefined
  if (value === false || value === 0) return { kind: 'off' }
  if (typeof value === 'number')
    return Number.isSafeInteger(value) && value > 0 ? { kind: 'on', budget: value } : { kind: 'on' }
  if (typeof value === 'string') return OFF_WORDS.test(value) ? { kind: 'off' } : { kind: 'on' }
  const fields = asRecord(value)
  return fields ? settingOfFields(Object.values(fields)) : { kind: 'on' }
}

// The budget of an object is that of any of its members. An object without members sets the usual thinking.
function settingOfFields(values: readonly unknown[]): ThinkingSetting {
  const settings = values.flatMap((value) => settingOf(value) ?? [])
  const on = settings.filter((one) => one.kind === 'on')
  if (on.length === 0 && settings.length > 0) return { kind: 'off' }
  const budgets = on.flatMap(({ budget }) => budget ?? [])
  return budgets.length > 0 ? { kind: 'on', budget: Math.max(...budgets) } : { kind: 'on' }
}
