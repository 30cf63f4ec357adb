import type { AuditEntry } from '../../api/audit.ts'
import type { Texts } from '../../locales/en.ts'

/** A change of a field in words, as the table shows it. */
export interface ChangeText {
  readonly field: string
  /** The value before the change; undefined if there was none. */
  readonly before: string | undefined
  readonly after: string
}

/** The functions that format values. */
export interface ValueFormatters {
  readonly money: (quota: number) => string
  readonly time: (unixSeconds: number) => string
}

/** The texts that have the words. */
export type WordTexts = Pick<
  Texts,
  'audit' | 'users' | 'models' | 'call' | 'guards' | 'tools' | 'content' | 'settings' | 'common'
>

type Change = AuditEntry['changes'][number]

/** Fields of audited objects whose values are amounts in quota units. */
const AMOUNTS: ReadonlySet<string> = new Set(['quota', 'remain_quota', 'budget'])

/** A change of a field of an object, in words: `Status: Enabled → Disabled`. */
export function changeText(
  { field, before, after }: Change,
  object: AuditEntry['object'],
  texts: WordTexts,
  formats: ValueFormatters,
): ChangeText {
  const limits: Readonly<Record<string, string>> = texts.audit.limits
  const write = (value: unknown): string => valueInWords(field, value, object, texts, formats)
  return {
    field: (isLimits(object) && limits[field]) || fieldInWords(field, texts),
    before: isNothing(before) ? undefined : write(before),
    after: isNothing(after) ? '–' : write(after),
  }
}

/** Whether the fields are the names of rate limits, such as `critical`. */
function isLimits({ kind, name }: AuditEntry['object']): boolean {
  return kind === 'option' && name === 'rate_limits'
}

function fieldInWords(field: string, { audit, models, call }: WordTexts): string {
  // The rest are names of prices and of what a call is charged for.
  const words: Readonly<Record<string, string>> = { ...call.lines, ...models.prices, ...audit.fields }
  return words[field] ?? field
}

function valueInWords(
  field: string,
  value: unknown,
  object: AuditEntry['object'],
  texts: WordTexts,
  formats: ValueFormatters,
): string {
  const { audit, users, common } = texts
  const [statuses, roles]: readonly Readonly<Record<string, string>>[] = [audit.statuses, users.roles]
  const text = String(value)
  if (Array.isArray(value))
    return value.map((one) => valueInWords(field, one, object, texts, formats)).join(common.comma)
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(
        ([name, part]) => `${fieldInWords(name, texts)} ${valueInWords(name, part, object, texts, formats)}`,
      )
      .join(common.comma)
  const { owner } = object
  if (field === 'user_id' && owner && owner.id === value) return owner.name
  if (object.kind !== 'price' && object.kind !== 'model') {
    if (field === 'status') return statuses?.[text] ?? text
    if (field === 'role') return roles?.[text] ?? text
    if (field === 'expired_time' && value === -1) return audit.words.never
    if (field === 'expired_time') return formats.time(Number(value))
    if (AMOUNTS.has(field) && typeof value === 'number') return formats.money(value)
  }
  const words: Readonly<Record<string, string>> = audit.words
  if (typeof value === 'boolean' || text === 'changed' || text === 'removed') return words[text] ?? text
  if (field === 'value' && object.kind !== 'option') return text
  return wordsOf(field, texts)?.[text] ?? text
}

/**
 * The words for the values of a field that the gateway defines, such as `month`. They are shown in the language
 * of the user.
 */
function wordsOf(
  field: string,
  { audit, guards, tools, content, settings }: WordTexts,
): Readonly<Record<string, string>> | undefined {
  switch (field) {
    case 'budget_period':
    case 'period':
    case 'limits_by':
    case 'method':
    case 'era':
    case 'on_client_gone':
      return audit.words
    case 'do':
      return guards.actions
    case 'mode':
      return guards.modes
    case 'where':
      return guards.places
    case 'on_failure':
      return guards.failures
    case 'pii':
      return guards.pii
    case 'approve':
      return tools.approvals
    case 'kind':
      return tools.auths
    case 'balance':
      return settings.balances
    case 'content_log_what':
      return content.levels
    case 'value':
      return { ...audit.words, ...settings.values }
    default:
      return undefined
  }
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined || value === ''
}
