import {
  checkConvertibleCompletion,
  completionFieldNames,
  COMPLETIONS_PROMPT_RULES,
  completionsCodec,
  readCompletionRequest,
  COMPLETIONS_REQUEST,
} from '@sluice/wire/chat'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { completionsStorageRules } from '../answer-storage-rules.ts'
import { chatRequests } from '../chat/client-dialect.ts'
import { chatConversion, type ConversionDialect } from '../conversion-dialects.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect, RequestReaderContext } from '../dialect.ts'
import { dialectForChannel } from '../choose-dialect.ts'
import type { ParsedRequest } from '../../request-stages.ts'

const PATH = '/completions'

const completionsConversion: ConversionDialect = {
  ...chatConversion,
  codec: completionsCodec,
  prompt: COMPLETIONS_PROMPT_RULES,
  path: () => PATH,
}

/**
 * Dialect of text completions: passed through to channels that speak chat, converted for others. A request
 * with messages is treated as a chat request, because older clients send such requests here.
 */
export function completionsDialect(conversions: Conversions, chat: Dialect): Dialect {
  const facts = {
    name: 'chat',
    endpoint: 'completions',
    names: completionFieldNames,
    keeping: completionsStorageRules,
  } as const
  const inChat: Dialect = {
    ...facts,
    shape: chat.shape,
    read: (scan, headers, reader) => chat.read(scan, headers, reader),
  }
  return {
    ...facts,
    shape: COMPLETIONS_REQUEST,
    ofForm: (scan) => (isChat(scan) ? inChat : undefined),
    read: (scan, _headers, reader) => completion(conversions, scan, reader),
  }
}

function isChat(scan: ScannedObject): boolean {
  return !scan.has('prompt')
}

function completion(
  conversions: Conversions,
  scan: ScannedObject,
  reader: RequestReaderContext,
): ParsedRequest {
  const read = readCompletionRequest(scan)
  const forModel = (model: string): ParsedRequest => {
    const request = { ...read, model }
    const forChannels = chatRequests(conversions, completionsConversion, scan, request, read.choices, reader)
    return {
      ...request,
      channelsFor(channels) {
        // If the request must be converted for every channel, it is checked here, so that a refused request
        // is not counted against limits.
        if (!channels.some((channel) => dialectForChannel(channel, 'chat', model) === 'chat'))
          checkConvertibleCompletion(scan)
        return channels
      },
      forChannels,
      forModel,
    }
  }
  return forModel(read.model)
}
