import { chatNames, readChatRequest } from '@sluice/wire/chat'
import type { Conversions } from '../conversions.ts'
import type { Dialect } from '../dialect.ts'
import { chatRequests } from './chat-requests.ts'
import { chatConversion } from './conversion.ts'
import type { ParsedRequest } from '../../request-stages.ts'

/** Dialect of chat completions: passed through to channels that speak it, converted for others. */
export function chatDialect(conversions: Conversions): Dialect {
  return {
    name: 'chat',
    endpoint: 'chat',
    names: chatNames,
    read(scan, _headers, reader) {
      const read = readChatRequest(scan)
      const forModel = (model: string): ParsedRequest => {
        const request = { ...read, model }
        const forChannels = chatRequests(conversions, chatConversion, scan, request, request.n, reader)
        const measured = request.hasMedia && { measuredBounds: { hasMedia: true } }
        return { ...request, ...measured, forChannels, forModel }
      }
      return forModel(read.model)
    },
  }
}
