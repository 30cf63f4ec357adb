import { z } from 'zod'
import type { ProviderName } from '../../domain/records/channel.ts'
import { asRecord } from '@sluice/wire/json/record'
import type { Actor } from '../authority.ts'
import type { AdministrationParts } from '../parts.ts'
import { askUpstream } from './ask-upstream.ts'
import { draftChannel, draftField } from './draft-channel.ts'
import { modelsRequest } from './models-request.ts'

/** Maximum size of a list in bytes; the longest of public vendors are below one million. */
const MAX_BODY_BYTES = 4_194_304
/** Maximum number of names in a list, and maximum length of a name. */
const MAX_NAMES = 2000
const MAX_NAME_LENGTH = 200
/** Placeholder for the models of a channel that does not list any yet. */
const NO_MODEL = 'none'

/** A channel, saved or not, whose upstream's models are listed. */
export const modelsQuestion = z.object(
  { channel: draftField },
  { error: 'expected an object with a channel' },
)

/** The names of models; `time` is in seconds. */
export const upstreamModels = z.object({
  success: z.boolean(),
  message: z.string(),
  time: z.number(),
  data: z.array(z.string()),
})

/** Lists the models of a channel's upstream, sorted by name, and stores nothing. */
export async function listUpstreamModels(
  parts: Pick<AdministrationParts, 'store' | 'liveConfig' | 'upstreams'>,
  { channel: given }: z.output<typeof modelsQuestion>,
  by: Actor,
): Promise<z.output<typeof upstreamModels>> {
  const { channel } = await draftChannel(parts, given, NO_MODEL, by)
  if (channel.provider !== 'generic')
    return { success: false, message: noList(channel.provider), time: 0, data: [] }
  const question = {
    request: modelsRequest(channel),
    maxBytes: MAX_BODY_BYTES,
    read: modelNames,
    unread: 'the answer is not a list of models',
  }
  const { answer, message, tookMs } = await askUpstream(parts, channel, question, by)
  return { success: answer !== undefined, message, time: tookMs / 1000, data: answer ?? [] }
}

function noList(provider: ProviderName): string {
  const name = { azure: 'Azure', bedrock: 'Bedrock', vertex: 'Vertex' }[provider]
  return `channels of ${name} cannot list models: enter their names`
}

/** The names in a list of models of any dialect; undefined if the body is not such a list. */
function modelNames(body: Buffer): string[] | undefined {
  let value: unknown
  try {
    value = JSON.parse(body.toString())
  } catch {
    return undefined
  }
  const list = Array.isArray(value) ? value : (asRecord(value)?.['data'] ?? asRecord(value)?.['models'])
  if (!Array.isArray(list)) return undefined
  const names = new Set<string>()
  for (const entry of list) {
    const model = asRecord(entry)
    const id = model?.['id'] ?? model?.['name']
    const name = typeof id === 'string' ? id.replace(/^models\//, '') : ''
    if (name !== '' && name.length <= MAX_NAME_LENGTH && isPrintable(name)) names.add(name)
    if (names.size === MAX_NAMES) break
  }
  return [...names].sort()
}

function isPrintable(name: string): boolean {
  return !/[\p{C}\s]/u.test(name)
}
