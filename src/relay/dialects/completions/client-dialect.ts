import {
  checkConvertible,
  completionNames,
  COMPLETIONS_PROMPT,
  completionsCodec,
  readCompletionRequest,
} from '../../../protocols/chat/index.ts'
import type { ScannedObject } from '../../../protocols/json/scanned-object.ts'
import { chatRequests } from '../chat/chat-requests.ts'
import { convertedChat } from '../chat/converted-chat.ts'
import type { ConvertedDialect } from '../converted-dialect.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect, RelayedRequest, Reader } from '../dialect.ts'
import { spokenDialect } from '../spoken-dialect.ts'

const PATH = '/completions'

const convertedCompletions: ConvertedDialect = {
  ...convertedChat,
  codec: completionsCodec,
  prompt: COMPLETIONS_PROMPT,
  path: () => PATH,
}

/**
 * Completions of a prompt: bytes to channels of chat, converted to others. A request with messages is one of
 * chat, as older clients send it here.
 */
export function completionsDialect(conversions: Conversions, chat: Dialect): Dialect {
  return {
    name: 'chat',
    endpoint: 'completions',
    names: completionNames,
    read: (scan, headers, reader) =>
      isChat(scan) ? chat.read(scan, headers, reader) : completion(conversions, scan, reader),
  }
}

function isChat(scan: ScannedObject): boolean {
  return !scan.has('prompt')
}

function completion(conversions: Conversions, scan: ScannedObject, reader: Reader): RelayedRequest {
  const read = readCompletionRequest(scan)
  const forModel = (model: string): RelayedRequest => {
    const request = { ...read, model }
    const forChannels = chatRequests(conversions, convertedCompletions, scan, request, read.choices, reader)
    return {
      ...request,
      channelsFor(channels) {
        // Refused before a limit or a quota counts it, where no channel takes it as it is.
        if (!channels.some((channel) => spokenDialect(channel, 'chat', model) === 'chat'))
          checkConvertible(scan)
        return channels
      },
      forChannels,
      forModel,
    }
  }
  return forModel(read.model)
}
