import type { Channel, ChannelFields } from '../../api/channels.ts'

/** A row of two fields: a name and its value. */
export interface NameValuePair {
  readonly name: string
  readonly value: string
}

/** The typed values of the section Advanced in the form of a channel. */
export interface AdvancedFormValues {
  /** Pairs of a model name that callers use and the name that the upstream uses. */
  readonly mapping: NameValuePair[]
  readonly headers: NameValuePair[]
  /** Pairs of a field of request bodies and its value, as JSON or as plain text. */
  readonly overrides: NameValuePair[]
  readonly proxy: string
  readonly probe: string
  readonly testModel: string
  readonly systemPrompt: string
  /** The service tier that the channel requests; empty for none. */
  readonly serviceTier: string
  /** Whether the form of answers is mended. */
  readonly repair: boolean
  /** Protocols of the channel in addition to the one in the field Protocol. */
  readonly protocols: string[]
  /** The advanced settings as they are stored, as JSON texts. Saving the form keeps what it does not show. */
  readonly settings: Stored
}

interface Stored {
  readonly setting: string
  readonly overrides: string
  readonly testModel: string
  readonly serviceTier: string
  readonly repair: boolean
  readonly other: string
}

/** The fields of the API whose errors are shown in the section Advanced. */
export const ADVANCED_FIELDS = {
  model_mapping: 'mapping',
  header_override: 'headers',
  headers: 'headers',
  param_override: 'overrides',
  override: 'overrides',
  proxy: 'proxy',
  probe: 'probe',
  test_model: 'testModel',
  system_prompt: 'systemPrompt',
  service_tier: 'serviceTier',
  repair: 'repair',
  setting: 'systemPrompt',
} as const satisfies Readonly<Record<string, keyof AdvancedFormValues>>

/** Names of all form fields in the section Advanced. */
export const ADVANCED_FIELD_NAMES: ReadonlySet<string> = new Set<keyof AdvancedFormValues>([
  ...Object.values(ADVANCED_FIELDS),
  'protocols',
])

/** The form values of a channel; without a channel, the values for a new one. */
export function advancedFormValues(channel: Channel | undefined): AdvancedFormValues {
  const fields = channel as Readonly<Record<string, unknown>> | undefined
  const stored = {
    setting: textOf(fields?.['setting']),
    overrides: textOf(fields?.['param_override']),
    testModel: textOf(fields?.['test_model']),
    serviceTier: textOf(channel?.service_tier),
    repair: channel?.repair ?? false,
    other: textOf(fields?.['other']),
  }
  const setting = recordOf(stored.setting)
  return {
    mapping: pairsOf(textOf(fields?.['model_mapping']), String),
    headers: pairsOf(textOf(fields?.['header_override']), String),
    overrides: overridesNotShownInForm(stored) === undefined ? pairsOf(stored.overrides, shownValue) : [],
    proxy: textOf(setting['proxy']),
    probe: textOf(setting['probe']),
    testModel: stored.testModel,
    systemPrompt: textOf(setting['system_prompt']),
    serviceTier: stored.serviceTier,
    repair: stored.repair,
    protocols: [...(channel?.protocol.slice(1) ?? [])],
    settings: stored,
  }
}

/**
 * Converts the typed values to fields of the API; parts of `setting` that the form does not show are kept.
 */
export function advancedFieldsOf(typed: AdvancedFormValues): Partial<ChannelFields> {
  const setting: Record<string, unknown> = { ...recordOf(typed.settings.setting) }
  for (const [name, text] of Object.entries({
    proxy: typed.proxy.trim(),
    probe: typed.probe.trim(),
    system_prompt: typed.systemPrompt.trim(),
  })) {
    if (text === '') delete setting[name]
    else setting[name] = text
  }
  const testModel = typed.testModel.trim()
  const serviceTier = typed.serviceTier.trim()
  const overrides =
    overridesNotShownInForm(typed.settings) ??
    textOfPairs(typed.overrides.map(({ name, value }) => [name, jsonOf(value)]))
  return {
    model_mapping: textOfPairs(typed.mapping.map(({ name, value }) => [name, value.trim()])),
    header_override: textOfPairs(typed.headers.map(({ name, value }) => [name, value])),
    setting: JSON.stringify(setting),
    // An empty text is sent only if it replaces a stored text.
    ...(overrides + typed.settings.overrides !== '' && { param_override: overrides }),
    ...(testModel + typed.settings.testModel !== '' && { test_model: testModel }),
    ...(serviceTier !== typed.settings.serviceTier && { service_tier: serviceTier || null }),
    ...(typed.repair !== typed.settings.repair && { repair: typed.repair }),
  }
}

/**
 * Stored overrides that the rows of the form cannot show, because another tool wrote them; undefined if there
 * are none.
 */
export function overridesNotShownInForm({ overrides }: Stored): string | undefined {
  return overrides.trim() !== '' && overrides.includes('"operations"') ? overrides : undefined
}

/** The number of advanced settings that differ from those of a new channel. */
export function countChangedAdvanced(typed: AdvancedFormValues): number {
  const texts = [typed.proxy, typed.probe, typed.testModel, typed.systemPrompt, typed.serviceTier]
  const lists = [typed.mapping, typed.headers, typed.overrides, typed.protocols]
  const repair = typed.repair ? 1 : 0
  return (
    repair +
    texts.filter((text) => text.trim() !== '').length +
    lists.filter((list) => list.length > 0).length
  )
}

function pairsOf(text: string, shown: (value: unknown) => string): NameValuePair[] {
  return Object.entries(recordOf(text)).map(([name, value]) => ({ name, value: shown(value) }))
}

// A text that would be read as another JSON value, such as `12` or `true`, is shown in quotes.
function shownValue(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  return typeof jsonOf(value) === 'string' && !value.startsWith('"') ? value : JSON.stringify(value)
}

/** A typed value: JSON if it is valid, and otherwise a text. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function textOfPairs(pairs: readonly (readonly [string, unknown])[]): string {
  const given = pairs.map(([name, value]) => [name.trim(), value] as const).filter(([name]) => name !== '')
  return given.length === 0 ? '' : JSON.stringify(Object.fromEntries(given))
}

function recordOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : {}
  } catch {
    return {}
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
