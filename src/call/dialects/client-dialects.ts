import type { ServedProtocol } from '@sluice/wire/protocols'
import { chatDialect } from './chat/client-dialect.ts'
import { completionsDialect } from './completions/client-dialect.ts'
import type { Conversions } from './conversions.ts'
import type { Dialect } from './dialect.ts'
import { embeddingsDialect } from './embeddings/client-dialect.ts'
import { messagesDialect } from './messages/client-dialect.ts'
import { moderationsDialect } from './moderations/client-dialect.ts'
import { rerankDialect } from './rerank/client-dialect.ts'
import { responsesDialect } from './responses/client-dialect.ts'

/**
 * Dialects of the endpoints whose request bodies name the model, by endpoint. `rerank v2` is a second form of
 * rerank. Gemini is missing, because its paths name the model.
 */
export type ClientDialects = ReturnType<typeof clientDialects>

/** Creates the dialects of the endpoints whose request bodies name the model. */
export function clientDialects(conversions: Conversions) {
  const chat = chatDialect(conversions)
  return {
    chat,
    completions: completionsDialect(conversions, chat),
    messages: messagesDialect(conversions),
    responses: responsesDialect(conversions),
    rerank: rerankDialect('as sent'),
    'rerank v2': rerankDialect('object'),
    embeddings: embeddingsDialect,
    moderations: moderationsDialect,
  } satisfies Record<Exclude<ServedProtocol, 'gemini'>, Dialect> & Record<string, Dialect>
}
