import type { ChannelFields } from '../management/channels/channel-fields.ts'
import { objectIn } from '../management/channels/channel-fields.ts'
import { ALLOW_FLAGS, isMappedStatus, keysIn, keysOfType } from '../management/channels/channel-definition.ts'
import { channelType } from '../management/channels/channel-types.ts'
import { GatewayError } from '../errors.ts'
import type { Cells } from './cells.ts'
import type { Family } from './family.ts'

const ENABLED = 1
const MANUALLY_DISABLED = 2

/** Settings of the other gateway that change requests or responses and have no counterpart here. */
const IGNORED_SETTINGS = ['force_format', 'thinking_to_content'] as const

/** Channel of another gateway, reduced to what is supported here. */
export interface SourceChannel {
  readonly cells: Cells
  readonly name: string
  readonly type: number
  /** Base URL as stored there; empty = the default of the type. */
  readonly baseUrl: string
  readonly models: readonly string[]
  readonly keys: readonly string[]
  readonly headers: ReadonlyMap<string, string>
  /** Requested name to upstream name, with chains resolved. */
  readonly modelMapping: ReadonlyMap<string, string>
  /** Fields that are copied unchanged. */
  readonly fields: Partial<ChannelFields>
}

/**
 * Reads a channel, and adds notes about settings that have no effect here. Throws `UnreadableValue` if a
 * required value cannot be read.
 */
export function readChannel(cells: Cells, family: Family): SourceChannel {
  const status = cells.integer('status', ENABLED)
  if (status !== ENABLED && status !== MANUALLY_DISABLED) {
    cells.note('disabled, as the other gateway had disabled it by itself')
  }
  noteWithoutEffect(cells)
  return {
    cells,
    name: cells.lenient(() => cells.text('name').trim(), ''),
    type: cells.integer('type'),
    baseUrl: cells.text('base_url').trim(),
    models: splitList(cells.text('models')),
    keys: keysOf(cells, family),
    headers: headersOf(cells),
    modelMapping: mappingOf(cells),
    fields: {
      group: splitList(cells.text('group')).join(','),
      priority: cells.lenient(() => cells.integer('priority'), 0),
      weight: Math.max(
        0,
        cells.lenient(() => cells.integer('weight'), 0),
      ),
      status: status === ENABLED ? 1 : 2,
      ...settingsOf(cells),
      ...displayOnlyFields(cells, family),
    },
  }
}

/** Splits a comma-separated list into distinct names. */
export function splitList(text: string): string[] {
  const names = text.split(',').map((name) => name.trim())
  return [...new Set(names.filter((name) => name !== ''))]
}

function keysOf(cells: Cells, family: Family): string[] {
  const type = channelType(cells.integer('type'))
  const given = cells.text('key').trim()
  const keys = family === 'new-api' && type ? keysOfType(type, given) : keysIn(given)
  const states = readObject(cells, 'channel_info')['multi_key_status_list']
  if (typeof states !== 'object' || states === null) return keys
  const disabled = new Set(
    Object.entries(states).flatMap(([index, state]) => (state === ENABLED ? [] : [Number(index)])),
  )
  const enabled = keys.filter((_, index) => !disabled.has(index))
  if (enabled.length < keys.length) {
    cells.note(`left out ${keys.length - enabled.length} of ${keys.length} keys, which are disabled there`)
  }
  return enabled
}

function headersOf(cells: Cells): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (const [name, value] of Object.entries(readObject(cells, 'header_override'))) {
    if (
      typeof value === 'string' &&
      !/^\*$|^re(?:gex)?:/i.test(name) &&
      !/\{(?:api_key|client_header:)/.test(value)
    ) {
      headers.set(name, value)
    } else cells.note(`header_override: left out ${JSON.stringify(name)}, which is not a fixed value`)
  }
  const organization = cells.lenient(() => cells.text('openai_organization').trim(), '')
  if (organization !== '') headers.set('OpenAI-Organization', organization)
  return headers
}

function mappingOf(cells: Cells): ReadonlyMap<string, string> {
  const given = new Map<string, string>()
  for (const [model, upstream] of Object.entries(readObject(cells, 'model_mapping'))) {
    if (typeof upstream === 'string' && upstream.trim() !== '') given.set(model, upstream.trim())
    else cells.note(`model_mapping: left out ${JSON.stringify(model)}, whose value is not a name`)
  }
  const ends = new Map<string, string>()
  for (const [model, upstream] of given) {
    const end = endOfChain(given, model, upstream)
    if (end === undefined)
      cells.note(`model_mapping: left out ${JSON.stringify(model)}, which is part of a cycle`)
    else if (end !== model) ends.set(model, end)
  }
  return ends
}

/** Follows a mapping to its end, because only one lookup is made here; undefined if it is circular. */
function endOfChain(
  mapping: ReadonlyMap<string, string>,
  model: string,
  upstream: string,
): string | undefined {
  const seen = new Set([model])
  let name = upstream
  for (let next = mapping.get(name); next !== undefined && next !== name; next = mapping.get(name)) {
    if (seen.has(name)) return undefined
    seen.add(name)
    name = next
  }
  return name
}

function settingsOf(cells: Cells): Pick<ChannelFields, 'setting' | 'settings'> {
  const setting = readObject(cells, 'setting')
  const settings = readObject(cells, 'settings')
  const flags = (object: Record<string, unknown>, names: readonly string[]): Record<string, boolean> =>
    Object.fromEntries(names.filter((name) => object[name] === true).map((name) => [name, true]))
  return {
    setting: JSON.stringify({ ...flags(setting, ['pass_through_body_enabled']), ...textsOf(cells, setting) }),
    settings: JSON.stringify(flags(settings, [...Object.keys(ALLOW_FLAGS), 'disable_store'])),
  }
}

/** Proxy and system prompt; one-api has a separate column for the latter. */
function textsOf(cells: Cells, setting: Record<string, unknown>): Record<string, string> {
  const column = cells.lenient(() => cells.text('system_prompt').trim(), '')
  const given = { system_prompt: column, ...setting }
  return Object.fromEntries(
    (['proxy', 'system_prompt'] as const).flatMap((name) => {
      const text = (given as Record<string, unknown>)[name]
      return typeof text === 'string' && text.trim() !== '' ? [[name, text.trim()]] : []
    }),
  )
}

/** Fields that are copied as they are: management tools of this family display them. */
function displayOnlyFields(cells: Cells, family: Family): Record<string, string> {
  const names =
    family === 'new-api'
      ? ['tag', 'remark', 'test_model', 'param_override', 'status_code_mapping', 'other']
      : []
  return Object.fromEntries(
    names.flatMap((name) => {
      const text = cells.lenient(() => cells.text(name), '')
      return text === '' ? [] : [[name, text]]
    }),
  )
}

function noteWithoutEffect(cells: Cells): void {
  if ('operations' in readObject(cells, 'param_override'))
    cells.note('param_override.operations has no effect here')
  for (const [from, to] of Object.entries(readObject(cells, 'status_code_mapping'))) {
    if (!isMappedStatus(from, to)) cells.note(`status_code_mapping.${from} has no effect here`)
  }
  const setting = readObject(cells, 'setting')
  for (const name of IGNORED_SETTINGS) {
    if (setting[name]) cells.note(`setting.${name} has no effect here`)
  }
}

function readObject(cells: Cells, column: string): Record<string, unknown> {
  const text = cells.lenient(() => cells.text(column), '')
  try {
    return objectIn(column, text)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    cells.note(`${error.message}; left out`)
    return {}
  }
}
