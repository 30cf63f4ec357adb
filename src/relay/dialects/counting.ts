import type { ProtocolName } from '../../domain/channel.ts'
import { NO_USAGE } from '../../domain/usage.ts'
import { edit } from '../../protocols/json/json-edit.ts'
import { parseRecord } from '../../protocols/json/record.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import type { PromptText } from '../../protocols/prompt-tokens.ts'
import type { Headers } from '../../server/header-names.ts'
import type { Dialect, Prepared } from './dialect.ts'
import { unstreamed } from './unstreamed.ts'

/** No channel of the model counts tokens: the gateway counts itself. */
export class CountingUnsupported extends Error {
  constructor() {
    super('no channel of this model counts tokens')
    this.name = 'CountingUnsupported'
  }
}

/** An endpoint of a protocol that counts the tokens of a request. */
export interface Counting {
  readonly protocol: ProtocolName
  /** Below a channel's base URL. */
  readonly path: string
  /** Checks a request, and returns the model that tokens are counted for. */
  model(scan: ScannedObject): string
  /** Headers for the upstream, names and values in turn. */
  upstreamHeaders(headers: Headers): readonly string[]
  /** The text that the gateway counts itself; throws for a request whose text is not all in it. */
  countable(scan: ScannedObject): PromptText
  /** The response that tells the count. */
  response(tokens: number): object
}

/** The calls of such an endpoint, for channels that speak its protocol. They cost nothing. */
export function countingDialect(counting: Counting): Dialect {
  const { protocol } = counting
  return {
    name: protocol,
    promptText: () => ({ text: '', extraTokens: 0 }),
    read(scan, headers) {
      const model = counting.model(scan)
      return {
        model,
        stream: false,
        maxTokens: 0,
        promptBound: 0,
        webSearch: false,
        isFree: true,
        mayBeUnserved: true,
        forChannels: (channels) =>
          channels.map((channel) => ({
            channel,
            outputMaximum: 0,
            choices: 1,
            prepare() {
              if (!channel.protocols.includes(protocol)) throw new CountingUnsupported()
              const upstreamModel = channel.modelMapping.get(model) ?? model
              return prepared(counting, scan, upstreamModel, counting.upstreamHeaders(headers))
            },
          })),
      }
    },
  }
}

function prepared(
  { protocol, path }: Counting,
  scan: ScannedObject,
  upstreamModel: string,
  headers: readonly string[],
): Prepared {
  const replace = new Map([['model', JSON.stringify(upstreamModel)]])
  return {
    protocol,
    path,
    headers,
    body:
      scan.value('model') === upstreamModel ? scan.bytes : edit(scan.bytes, scan, { remove: [], replace }),
    upstreamModel,
    dropped: [],
    tap: unstreamed,
    reply(bytes) {
      const valid = typeof parseRecord(bytes.toString())?.['input_tokens'] === 'number'
      return { facts: { valid, usage: NO_USAGE, error: false, text: () => '' }, body: () => bytes }
    },
  }
}
