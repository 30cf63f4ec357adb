import { KnownNames, type SpellingsOf } from '../json/known-names.ts'
import { requestNames } from '../request-names.ts'
import { CONVERTED_CHECKS } from './converted-checks.ts'
import { CHECKS } from './native/request.ts'
import { camelCase, snakeCase } from './spelling.ts'

const spellingsOf: SpellingsOf = (field) => {
  const usual = camelCase(field)
  return [usual, snakeCase(usual)]
}

/** Builds the names of an object; each field has two spellings. */
function names(fields: string, below?: Readonly<Record<string, KnownNames>>): KnownNames {
  return new KnownNames(fields.split(' '), below, spellingsOf)
}

// Arguments and responses of functions are not listed, because their names are the client's.
const part = names('text thought thoughtSignature executableCode codeExecutionResult videoMetadata', {
  inlineData: names('mimeType data displayName'),
  fileData: names('mimeType fileUri displayName'),
  functionCall: names('id name args'),
  functionResponse: names('id name response'),
})

const content = names('role', { parts: part })

const tool = names(
  'googleSearch googleSearchRetrieval googleMaps enterpriseWebSearch codeExecution urlContext fileSearch ' +
    'computerUse retrieval mcpServers',
  {
    functionDeclarations: names(
      'name description behavior parameters parametersJsonSchema response responseJsonSchema',
    ),
  },
)

const generation = {
  contents: content,
  systemInstruction: content,
  tools: tool,
  toolConfig: names('retrievalConfig', { functionCallingConfig: names('mode allowedFunctionNames') }),
  generationConfig: names(
    'maxOutputTokens candidateCount temperature topP topK stopSequences seed presencePenalty ' +
      'frequencyPenalty responseModalities responseMimeType responseSchema responseJsonSchema ' +
      'responseLogprobs logprobs mediaResolution speechConfig imageConfig routingConfig modelSelectionConfig',
    { thinkingConfig: names('thinkingBudget thinkingLevel includeThoughts') },
  ),
}

const FIELDS = [...CHECKS.keys(), ...CONVERTED_CHECKS.keys(), 'model', 'store', 'stream']

/** Names of the fields of requests that generate content. */
export const geminiNames = requestNames(FIELDS, generation, spellingsOf)

/** Names of the fields of requests that count tokens, which may contain a whole request. */
export const countNames = requestNames(
  FIELDS,
  { ...generation, generateContentRequest: geminiNames },
  spellingsOf,
)

const EMBED_FIELDS = 'model title taskType outputDimensionality'

/** Names of the fields of embeddings requests, for one content or several. */
export const embedNames = requestNames(
  EMBED_FIELDS.split(' '),
  {
    content,
    requests: names(EMBED_FIELDS, { content }),
    embedContentConfig: names(EMBED_FIELDS),
  },
  spellingsOf,
)
