import { NO_USAGE } from '../../../domain/usage.ts'
import { edit } from '../../../protocols/json/json-edit.ts'
import { countedModel } from '../../../protocols/messages/index.ts'
import { parseRecord } from '../../../protocols/json/record.ts'
import type { ScannedObject } from '../../../protocols/json/scanned-object.ts'
import type { Dialect, Prepared } from '../dialect.ts'
import { unstreamed } from '../unstreamed.ts'
import { versionHeaders } from './version-headers.ts'

/** No channel of the model counts tokens: the gateway counts itself. */
export class CountingUnsupported extends Error {
  constructor() {
    super('no channel of this model counts tokens')
    this.name = 'CountingUnsupported'
  }
}

/** `POST /v1/messages/count_tokens`, for channels that speak messages. It costs nothing. */
export const countTokensDialect: Dialect = {
  name: 'messages',
  promptText: () => ({ text: '', extraTokens: 0 }),
  read(scan, headers) {
    const model = countedModel(scan)
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
            if (!channel.protocols.includes('messages')) throw new CountingUnsupported()
            return prepared(scan, channel.modelMapping.get(model) ?? model, versionHeaders(headers))
          },
        })),
    }
  },
}

function prepared(scan: ScannedObject, upstreamModel: string, headers: readonly string[]): Prepared {
  const replace = new Map([['model', JSON.stringify(upstreamModel)]])
  return {
    protocol: 'messages',
    path: '/messages/count_tokens',
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
