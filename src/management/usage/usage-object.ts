import { promptTokens, type Usage } from '@sluice/wire/usage'
import { z } from 'zod'
import { plainTextType, integerType, oneOfType } from '../../domain/records/field-types.ts'
import { USAGE, type ShownCall } from '../../domain/records/usage.ts'
import { USAGE_COUNTS } from '../../domain/records/usage-counts.ts'
import { declareResponse } from '../record-schemas.ts'

const text = plainTextType()
const integer = integerType()
const { fields } = USAGE

/** Fields that a row of the usage log and a sum of rows have in common. */
const counted = {
  prompt_tokens: {
    type: integer,
    about: 'All input, including tokens read from and written to a cache',
    of: ({ usage }: Pick<ShownCall, 'usage'>) => promptTokens(usage),
  },
  ...(Object.fromEntries(
    Object.entries(USAGE_COUNTS).map(([name, field]) => [
      name,
      { ...field, of: ({ usage }: Pick<ShownCall, 'usage'>) => usage[name as keyof Usage] },
    ]),
  ) as unknown as typeof USAGE_COUNTS),
}

/**
 * A row of the usage log: fields of the record, and values computed from them. CSV files have the same order.
 * Fields of the record that are not listed here come last.
 */
const row = Object.assign(
  {
    id: fields.id,
    request_id: { type: text, of: ({ id }: ShownCall) => id },
    created_at: {
      type: integer,
      about: 'Unix seconds of the end of the call',
      of: ({ ended_ms }: ShownCall) => Math.floor(ended_ms / 1000),
    },
    type: { type: oneOfType([2], '2'), of: () => 2 },
    user_id: fields.user_id,
    username: { type: text },
    token_id: fields.token_id,
    token_name: { type: text },
    model: fields.model,
    requested_model: fields.requested_model,
    group: fields.group,
    quota: fields.quota,
    ...counted,
    use_time: {
      type: integer,
      about: 'Seconds',
      of: ({ duration_ms }: ShownCall) => Math.round(duration_ms / 1000),
    },
  },
  fields,
  {
    content_address: {
      type: text,
      about: 'Where the content log keeps what was said; empty if it keeps nothing of the call',
      of: ({ content }: ShownCall) => content?.address ?? '',
    },
    content_sha256: {
      type: text,
      about: 'SHA-256 of the kept parts one after the other; empty likewise',
      of: ({ content }: ShownCall) => content?.sha256 ?? '',
    },
    channel_id: {
      type: integer,
      shown: 'admin',
      about: 'Stays the same when the channel is renamed',
      of: ({ channel_id }: ShownCall) => channel_id,
    },
  } as const,
)

const own = declareResponse(row, 'holder')
const all = declareResponse(row, 'admin')
const counts = declareResponse(counted, 'holder')

/** A call in the usage log as its user sees it; `docs/api.md: Usage log`. */
export const ownUsageSchema = own.schema

/**
 * A call in the usage log as administrators see it, with the channel and the upstream's name for the model.
 */
export const usageSchema = all.schema

/** Converts a call to the form in which its user sees it. */
export const ownUsageObject: (entry: ShownCall) => z.output<typeof ownUsageSchema> = own.answer

/** Converts a call to the form in which administrators see it. */
export const usageObject: (entry: ShownCall) => z.output<typeof usageSchema> = all.answer

/** Sums of the usage log; `docs/api.md: Usage log`. */
export const usageStatSchema = z.object({
  quota: z.int(),
  ...counts.schema.shape,
  requests: z.int().meta({ description: 'Calls that got a response' }),
  rpm: z.int().meta({ description: 'Of these, in the last minute' }),
  tpm: z.int().meta({ description: 'Tokens of the last minute' }),
})

/** Converts the token counts of a call or of a sum to fields of responses. */
export const countsObject = (usage: Usage): z.output<typeof counts.schema> => counts.answer({ usage })
