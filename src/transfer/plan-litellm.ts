import type {
  LeftEntry,
  LitellmChannel,
  LitellmConfiguration,
  LitellmModel,
  LitellmPrice,
} from '@sluice/import/litellm'
import { UnreadableValue } from '@sluice/import/row-reader'
import { type Decimal, decimalText, parseDecimal } from '../domain/decimal.ts'
import { endpointByName } from '../domain/endpoints.ts'
import type { ReportLine } from '../domain/import-line.ts'
import type { Json } from '../domain/json.ts'
import { withoutTrailing } from '../domain/without-trailing.ts'
import { GatewayError } from '../errors.ts'
import { channelDefinition } from '../management/channels/channel-definition.ts'
import { addApiVersion, channelType } from '../management/channels/channel-types.ts'
import type { PlannedChannel } from './plan-channels.ts'
import type { PlannedEntry, SourceConfiguration } from './plan-configuration.ts'
import { importedLine } from './report.ts'

/** Plans the channels and prices of a LiteLLM configuration. `missing` says why variables were not read. */
export function planLitellm(
  { channels, prices, left, otherSections }: LitellmConfiguration,
  missing: string,
): SourceConfiguration {
  const planned: PlannedChannel[] = []
  const entries = new Map<string, PlannedEntry>()
  const lines = left.map((entry) => leftLine('channel', entry))
  for (const price of prices) {
    const entry = planPrice(price)
    if (entry && 'entry' in entry) entries.set(price.model, entries.get(price.model) ?? entry)
    else if (entry) lines.push(entry)
  }
  for (const channel of channels) {
    try {
      planned.push(planChannel(channel, missing))
    } catch (error) {
      if (!(error instanceof UnreadableValue || error instanceof GatewayError)) throw error
      const note = error.message
      lines.push(...channel.models.map(({ model: name }) => leftLine('channel', { name, note })))
    }
  }
  return {
    entries: [...entries.values()],
    channels: planned,
    left: [...lines, ...otherSections.map((entry) => leftLine('option', entry))],
  }
}

function planChannel(channel: LitellmChannel, why: string): PlannedChannel {
  const { name, provider, key, other, project, missing, models } = channel
  const type = channelType(provider.type)
  if (!type) throw new UnreadableValue('litellm_params.model', 'a provider that this gateway can call')
  const given = channel.address || provider.address || ''
  if (given === '' && type.defaultAddress === '' && (type.provider ?? 'azure') === 'azure')
    throw new UnreadableValue('api_base', 'an address')
  const hasKey = key !== ''
  const isOff = !hasKey && type.keyless !== true
  const notes = [
    ...missing.map((variable) => `the variable ${variable} ${why}`),
    ...(isOff ? ['it is disabled, because it has no key'] : []),
    ...models.flatMap((one) => one.notes),
  ]
  const definition = channelDefinition(
    {
      name,
      type: type.type,
      models: models.map(({ model }) => model).join(','),
      base_url: given === '' ? '' : provider.keepsAddress ? given : addApiVersion(given, type),
      model_mapping: JSON.stringify(
        Object.fromEntries(
          models.flatMap(({ model, upstream }) => (model === upstream ? [] : [[model, upstream]])),
        ),
      ),
      other,
      status: isOff || missing.length > 0 ? 2 : 1,
    },
    hasKey ? [key] : [],
  )
  const declared = {
    ...definition.declared,
    ...(project !== '' && { project }),
    ...(given !== '' && provider.keepsAddress && { base_url: withoutTrailing(given, '/') }),
    ...limitOf(models, notes),
  }
  return { channel: { ...definition, declared }, line: importedLine('channel', undefined, name, notes) }
}

/**
 * The rate limit of a channel: the sum over its entries. Omitted with a note if only some entries state a
 * limit.
 */
function limitOf(models: readonly LitellmModel[], notes: string[]): { readonly rate_limit?: Json } {
  const limits = (['rpm', 'tpm'] as const).flatMap((name): [string, number][] => {
    const stated = models.filter((one) => one[name] > 0)
    if (stated.length === 0) return []
    if (stated.length < models.length) {
      notes.push(`${name} does not carry over: it limits some models of the channel only`)
      return []
    }
    if (models.length > 1) notes.push(`${name} is the sum of those of its models`)
    return [[LIMITS[name], stated.reduce((sum, one) => sum + one[name], 0)]]
  })
  return limits.length === 0 ? {} : { rate_limit: { ...Object.fromEntries(limits), window: '1m' } }
}

const LIMITS = { rpm: 'requests', tpm: 'tokens' } as const

/**
 * The price of a model per million tokens; a report line if the price is incomplete; undefined if none is
 * stated.
 */
function planPrice(price: LitellmPrice): PlannedEntry | ReportLine | undefined {
  const { model } = price
  const [input, output] = [price.input, price.output].map((text) =>
    text === undefined ? undefined : parseDecimal(text),
  )
  if (!input && !output) return undefined
  if (!input || (!output && !price.isEmbedding && endpointByName(model) !== 'embeddings')) {
    const note = 'expected both input_cost_per_token and output_cost_per_token'
    return leftLine('price', { name: model, note })
  }
  const value = { price: { input: perMillion(input), ...(output && { output: perMillion(output) }) } }
  return {
    entry: { section: 'models', name: model, value },
    line: importedLine('price', undefined, model, []),
  }
}

function perMillion({ digits, scale }: Decimal): string {
  return decimalText(
    scale >= 6 ? { digits, scale: scale - 6 } : { digits: digits * 10n ** BigInt(6 - scale), scale: 0 },
  )
}

function leftLine(kind: 'channel' | 'price' | 'option', { name, note }: LeftEntry): ReportLine {
  return { kind, id: undefined, name, fate: 'left', notes: [note] }
}
