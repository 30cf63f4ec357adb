import { z } from 'zod'
import { GatewayError } from '../../errors.ts'
import { KNOWN_TYPES } from './channel-types.ts'

/** A text with JSON in it that stands for an object; empty or null stands for none. */
const jsonField = z.string({ error: 'expected a text that holds a JSON object' }).nullish()
const textField = z.string({ error: 'expected a text' })

/**
 * The fields of a channel that mean something here, as tools of this family of gateways write them. All
 * others are kept and shown again.
 */
export const channelFields = z.looseObject(
  {
    name: textField,
    type: z.int({ error: `expected one of ${KNOWN_TYPES}` }),
    base_url: textField.nullish(),
    /** One a line. */
    key: textField.nullish(),
    /** Names with commas between them. */
    models: textField.nullish(),
    group: textField.nullish(),
    model_mapping: jsonField,
    header_override: jsonField,
    setting: jsonField,
    settings: jsonField,
    priority: z.int({ error: 'expected a whole number' }).nullish(),
    weight: z
      .int({ error: 'expected a whole number from 0 on' })
      .min(0, { error: 'expected 0 or more' })
      .nullish(),
    status: z
      .union([z.literal(1), z.literal(2)], { error: 'expected 1 (enabled) or 2 (disabled)' })
      .nullish(),
  },
  { error: 'expected an object with the fields of a channel' },
)

/** A channel as tools send it. */
export type ChannelFields = z.output<typeof channelFields>

/** A part of it: what is absent stays as it is. */
export const someChannelFields = channelFields.partial()

/** Fields that the gateway writes itself: whatever is sent of them is not looked at. */
export const OWN_FIELDS: ReadonlySet<string> = new Set([
  'id',
  'key',
  'mode',
  'multi_key_mode',
  'key_mode',
  'created_time',
  'test_time',
  'response_time',
  'channel_info',
  'managed',
  'managed_by',
])

/** The object that a text with JSON stands for. Throws `invalid_request` naming the field. */
export function objectIn(field: string, text: string | null | undefined): Record<string, unknown> {
  if (text === undefined || text === null || text.trim() === '') return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new GatewayError('invalid_request', `${field}: expected a text that holds a JSON object`)
  }
  if (value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new GatewayError('invalid_request', `${field}: expected a text that holds a JSON object`)
  }
  if (Object.hasOwn(value, '__proto__')) {
    throw new GatewayError('invalid_request', `${field}: expected other names than __proto__`)
  }
  return value as Record<string, unknown>
}

/** The same, of texts alone. */
export function textsIn(field: string, text: string | null | undefined): Record<string, string> {
  const value = objectIn(field, text)
  for (const [name, part] of Object.entries(value)) {
    if (typeof part === 'string') continue
    throw new GatewayError('invalid_request', `${field}: expected a text for ${JSON.stringify(name)}`)
  }
  return value as Record<string, string>
}
