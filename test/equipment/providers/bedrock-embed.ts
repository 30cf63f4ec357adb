import type { DoubleAnswer } from './double.ts'

type Json = Readonly<Record<string, unknown>>

const TITAN = new Set(['inputText', 'dimensions', 'normalize', 'embeddingTypes'])
const COHERE = new Set(['texts', 'input_type', 'embedding_types', 'output_dimension', 'truncate'])
const INPUT_TYPES = new Set(['search_document', 'search_query', 'classification', 'clustering'])

/** Whether a model makes embeddings. */
export function isEmbedder(model: string): boolean {
  return /titan-embed|cohere\.embed/.test(model)
}

/** Why `invoke` refuses a request for vectors; undefined if it accepts it. */
export function embedError(model: string, body: Json): string | undefined {
  const isTitan = model.includes('titan')
  const extra = Object.keys(body).find((name) => !(isTitan ? TITAN : COHERE).has(name))
  if (extra !== undefined) return `Malformed input request: extraneous key [${extra}] is not permitted`
  if (isTitan) return typeof body['inputText'] === 'string' ? undefined : 'required key [inputText] not found'
  const { texts, input_type: type } = body
  if (!Array.isArray(texts) || texts.length > 96) return 'texts: at most 96 are permitted'
  return INPUT_TYPES.has(String(type)) ? undefined : 'required key [input_type] not found'
}

/**
 * Vectors of a text's length and a half, and one token for each word; Cohere reports the tokens only in a
 * header.
 */
export function embedAnswer(model: string, body: Json): DoubleAnswer {
  const texts = (body['texts'] ?? [body['inputText']]) as string[]
  const tokens = texts.reduce((sum, text) => sum + text.split(' ').length, 0)
  const vectors = texts.map((text) => [text.length, 0.5])
  const whole = model.includes('titan')
    ? { embedding: vectors[0], embeddingsByType: { float: vectors[0] }, inputTextTokenCount: tokens }
    : { id: 'e1', texts, response_type: 'embeddings_by_type', embeddings: { float: vectors } }
  return { headers: { 'x-amzn-bedrock-input-token-count': String(tokens) }, body: JSON.stringify(whole) }
}
