import {
  EMBEDDINGS_LIMITS,
  promptText,
  readEmbeddingsReply,
  readEmbeddingsRequest,
} from '../../../protocols/embeddings/index.ts'
import { withMappedModel } from '../../../protocols/mapped-model.ts'
import type { Dialect } from '../dialect.ts'
import { unstreamed } from '../unstreamed.ts'

/** Embeddings: bytes to channels of chat, with vectors in the form that the client asked for. */
export const embeddingsDialect: Dialect = {
  name: 'chat',
  endpoint: 'embeddings',
  servedBy: ['chat'],
  scanLimits: EMBEDDINGS_LIMITS,
  promptText,
  read(scan) {
    const { model, promptBound, form } = readEmbeddingsRequest(scan)
    return {
      model,
      stream: false,
      maxTokens: 0,
      promptBound,
      webSearch: false,
      forChannels: (channels) =>
        channels.map((channel) => ({
          channel,
          outputMaximum: 0,
          choices: 1,
          prepare: () => ({
            protocol: 'chat',
            path: '/embeddings',
            headers: [],
            ...withMappedModel(scan, model, channel),
            dropped: [],
            tap: unstreamed,
            reply: (bytes) => readEmbeddingsReply(bytes, form),
          }),
        })),
    }
  },
}
