import type { Codec } from '../codec.ts'
import { decodeReply } from './decode/reply.ts'
import { decodeRequest } from './decode/request.ts'
import { encodeRequest, mustFetchMedia } from './encode/request.ts'
import { encodeReply } from './encode/reply.ts'
import { ChatStreamDecoder } from './stream/decoder.ts'
import { ChatStreamEncoder } from './stream/encoder.ts'

/** Converts between the chat dialect and the neutral form. */
export const chatCodec: Codec = {
  decodeRequest,
  mustFetch: mustFetchMedia,
  encodeRequest,
  answerTool: () => undefined,
  decodeReply,
  encodeReply,
  streamDecoder: (memory, choices) => new ChatStreamDecoder(memory, choices),
  streamEncoder: (minted, options) => new ChatStreamEncoder(minted, options),
}
