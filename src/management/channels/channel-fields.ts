import { parseRecord } from '@sluice/wire/json/record'
import { z } from 'zod'
import { CHANNEL, CHANNEL_SETTINGS } from '../../domain/records/channel.ts'
import { GatewayError } from '../../errors.ts'
import { fitsInBytes, TEXT_BYTE_LIMITS } from '../../domain/text-length.ts'
import { fieldsWith } from '../../domain/records/record.ts'
import { requestBodySchemas } from '../record-schemas.ts'
import { anyField, unionErrorMessage, textField, tooLongMessage } from '../input-fields.ts'
import { KNOWN_TYPES } from './channel-types.ts'

const A_MAPPING = 'expected a text that holds a JSON object'

/** A text that contains a JSON object; an empty text or null means an empty object. */
const jsonField = textField(A_MAPPING, TEXT_BYTE_LIMITS.list).nullish()
const listField = textField('expected a text', TEXT_BYTE_LIMITS.list)
const protocolField = textField('expected a protocol')

/**
 * A text that contains a JSON object. Its member `system_prompt` may be as long again as all others together.
 */
const settingField = textField(A_MAPPING, Infinity)
  .superRefine((text, ctx) => {
    const { system_prompt: prompt, ...others } = parseRecord(text) ?? {}
    const isPrompt = typeof prompt === 'string'
    if (isPrompt && !fitsInBytes(prompt, TEXT_BYTE_LIMITS.list))
      ctx.addIssue({ code: 'custom', message: `system_prompt: ${tooLongMessage(TEXT_BYTE_LIMITS.list)}` })
    if (!fitsInBytes(isPrompt ? JSON.stringify(others) : text, TEXT_BYTE_LIMITS.list))
      ctx.addIssue({ code: 'custom', message: tooLongMessage(TEXT_BYTE_LIMITS.list) })
  })
  .meta({ 'x-max-bytes': TEXT_BYTE_LIMITS.list, description: 'Its bound is without `system_prompt`' })
  .nullish()

/** Settings that have the same form in management tools and in gateway.yaml. */
export const PLAIN_SETTINGS = fieldsWith(CHANNEL_SETTINGS.fields, 'edit')

/**
 * The fields of a channel in the format of One API and related gateways. Unknown fields are stored and
 * returned unchanged.
 */
export const channelFields = z
  .object(
    {
      ...requestBodySchemas(CHANNEL.fields, 'new'),
      ...requestBodySchemas(PLAIN_SETTINGS, 'new'),
      type: z.int({ error: `expected one of ${KNOWN_TYPES}` }),
      base_url: textField('expected a text').nullish(),
      /** Protocols that the upstream speaks, if they differ from that of the channel's type. */
      protocol: z
        .union([protocolField, z.array(protocolField).readonly()], {
          error: unionErrorMessage('expected a protocol or a list of them'),
        })
        .nullish(),
      /** The channel's keys, one per line. */
      key: listField.nullish(),
      /** Model names, separated by commas. */
      models: listField.nullish(),
      group: listField.nullish(),
      model_mapping: jsonField,
      header_override: jsonField,
      setting: settingField,
      settings: jsonField,
      param_override: jsonField,
      status_code_mapping: jsonField,
      /** A text, whose meaning the type decides; a value of another type is ignored. */
      other: anyField(TEXT_BYTE_LIMITS.list).optional(),
      weight: z
        .int({ error: 'expected a whole number from 0 on' })
        .min(0, { error: 'expected 0 or more' })
        .nullish(),
    },
    { error: 'expected an object with the fields of a channel' },
  )
  .catchall(anyField())

/** A channel in the format of management tools. */
export type ChannelFields = z.output<typeof channelFields>

/** Changes of a channel in the format of management tools; absent fields stay unchanged. */
export const partialChannelFields = channelFields.partial()

/** Some fields of a channel in the format of management tools. */
export type PartialChannelFields = z.output<typeof partialChannelFields>

/** Fields of a channel that the gateway sets itself; their values in requests are ignored. */
export const GATEWAY_SET_FIELDS: ReadonlySet<string> = new Set([
  ...CHANNEL.columns.flatMap(({ edit, shown, as, field }) => (edit || shown === false ? [] : [as ?? field])),
  'key',
  'mode',
  'multi_key_mode',
  'key_mode',
  'test_costs',
  'channel_info',
  'managed',
  'managed_by',
  'version',
])

/**
 * Parses a field that contains a JSON object. Throws `invalid_request`, which names the field, if it does
 * not.
 */
export function parseJsonObjectField(
  field: string,
  text: string | null | undefined,
): Record<string, unknown> {
  if (text === undefined || text === null || text.trim() === '') return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new GatewayError('invalid_request', `${field}: ${A_MAPPING}`)
  }
  if (value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new GatewayError('invalid_request', `${field}: ${A_MAPPING}`)
  }
  if (Object.hasOwn(value, '__proto__')) {
    throw new GatewayError('invalid_request', `${field}: expected other names than __proto__`)
  }
  return value as Record<string, unknown>
}

/**
 * Parses a field that contains a JSON object whose values are texts. Throws `invalid_request`, which names
 * the field, if it does not.
 */
export function parseTextMapField(field: string, text: string | null | undefined): Record<string, string> {
  const value = parseJsonObjectField(field, text)
  for (const [name, part] of Object.entries(value)) {
    if (typeof part === 'string') continue
    throw new GatewayError('invalid_request', `${field}: expected a text for ${JSON.stringify(name)}`)
  }
  return value as Record<string, string>
}
