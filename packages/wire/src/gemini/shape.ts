import { defineShape } from '../shape/define-shape.ts'
import { JSON_SCHEMA } from '../shape/json-schema.ts'
import type { Members } from '../shape/vocabulary.ts'
import { spellingsOf } from './field-spelling.ts'

const CONTENTS = {
  Content: { parts: 'text | Part', role: 'role' },
  /** The role of an instruction has no meaning. */
  Instruction: { parts: 'text | Part', role: 'term' },
  Part: {
    codeExecutionResult: 'Code of tool',
    executableCode: 'Code of model',
    fileData: 'Data',
    functionCall: 'Call of model',
    functionResponse: 'result | FunctionResponse',
    inlineData: 'Data',
    mediaResolution: 'term',
    text: 'text',
    thought: 'number',
    thoughtSignature: 'signature',
    toolCall: 'ServerCall of model',
    toolResponse: 'ServerCall of tool',
    videoMetadata: 'term',
  },
  'Part?thought': { text: 'reasoning' },
  Call: {
    args: 'arguments',
    id: 'id',
    name: 'name',
    partialArgs: 'arguments | PartialArg',
    willContinue: 'number',
  },
  PartialArg: {
    boolValue: 'number',
    jsonPath: 'input',
    nullValue: 'term',
    numberValue: 'arguments',
    stringValue: 'input',
    willContinue: 'number',
  },
  ServerCall: { args: 'arguments', id: 'id', response: 'result', toolType: 'term' },
  FunctionResponse: {
    id: 'id',
    name: 'name',
    parts: 'Part',
    response: 'result',
    scheduling: 'term',
    willContinue: 'number',
  },
  Code: { code: 'input', id: 'id', language: 'term', outcome: 'term', output: 'result' },
  Data: { data: 'media', displayName: 'text', fileUri: 'address', mimeType: 'term' },
} as const satisfies Readonly<
  Record<
    string,
    Members<'Part' | 'PartialArg' | 'Call' | 'ServerCall' | 'FunctionResponse' | 'Code' | 'Data'>
  >
>

/**
 * Generating content, and counting its tokens. https://ai.google.dev/api/generate-content
 * https://ai.google.dev/api/tokens
 */
export const GEMINI_REQUEST = defineShape(
  {
    Request: {
      cachedContent: 'id',
      contents: 'text | Content of user',
      continuationToken: 'sealed',
      generateContentRequest: 'Request',
      generationConfig: 'GenerationConfig',
      labels: 'data',
      model: 'name',
      safetySettings: 'SafetySetting',
      serviceTier: 'term',
      stream: 'number',
      systemInstruction: 'text | Instruction of system',
      toolConfig: 'ToolConfig of program',
      tools: 'Tool of program',
    },
    SafetySetting: { category: 'term', method: 'term', threshold: 'term' },
    GenerationConfig: {
      candidateCount: 'number',
      frequencyPenalty: 'number',
      imageConfig: 'ImageConfig',
      logprobs: 'number',
      maxOutputTokens: 'number',
      mediaResolution: 'term',
      presencePenalty: 'number',
      responseJsonSchema: 'Schema of program',
      responseLogprobs: 'number',
      responseMimeType: 'term',
      responseModalities: 'term',
      responseSchema: 'Schema of program',
      seed: 'number',
      speechConfig: 'term',
      stopSequences: 'text',
      temperature: 'number',
      thinkingConfig: 'ThinkingConfig',
      topK: 'number',
      topP: 'number',
    },
    ImageConfig: { aspectRatio: 'term', imageSize: 'term' },
    ThinkingConfig: { includeThoughts: 'number', thinkingBudget: 'number', thinkingLevel: 'term' },
    ...CONTENTS,
    /** The role is ignored. */
    Instruction: { parts: 'text | Part', role: 'term' },
    Tool: {
      codeExecution: 'term',
      computerUse: 'term',
      enterpriseWebSearch: 'term',
      fileSearch: 'term',
      functionDeclarations: 'Function',
      googleMaps: 'term',
      googleSearch: 'term',
      googleSearchRetrieval: 'term',
      retrieval: 'term',
      urlContext: 'term',
    },
    Function: {
      behavior: 'term',
      description: 'text',
      name: 'name',
      parameters: 'Schema',
      parametersJsonSchema: 'Schema',
      response: 'Schema',
      responseJsonSchema: 'Schema',
    },
    ToolConfig: {
      functionCallingConfig: 'FunctionCalling',
      includeServerSideToolInvocations: 'number',
      retrievalConfig: 'data',
    },
    FunctionCalling: { allowedFunctionNames: 'name', mode: 'term' },
    ...JSON_SCHEMA,
  },
  spellingsOf,
)

/** Embedding contents. https://ai.google.dev/api/embeddings */
export const GEMINI_EMBED_REQUEST = defineShape(
  {
    Request: {
      content: 'text | Content of user',
      embedContentConfig: 'Request',
      model: 'name',
      outputDimensionality: 'number',
      requests: 'Request',
      taskType: 'term',
      title: 'text of user',
    },
    ...CONTENTS,
  },
  spellingsOf,
)

/**
 * Answers, and the chunks of their streams, which have the same form.
 * https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse
 */
export const GEMINI_ANSWER = defineShape(
  {
    Answer: {
      candidates: 'Candidate',
      createTime: 'term',
      error: 'Error of provider',
      modelStatus: 'ModelStatus of provider',
      modelVersion: 'name',
      promptFeedback: 'Feedback of provider',
      responseId: 'id',
      usageMetadata: 'term of provider',
    },
    ModelStatus: { message: 'text', modelStage: 'term', retirementTime: 'term' },
    Candidate: {
      avgLogprobs: 'number',
      citationMetadata: 'Citations of provider',
      content: 'Content',
      continuationToken: 'sealed',
      finishMessage: 'text',
      finishReason: 'term',
      groundingMetadata: 'Grounding of provider',
      index: 'number',
      logprobsResult: 'tokens',
      safetyRatings: 'term of provider',
      tokenCount: 'number',
      urlContextMetadata: 'UrlContext of provider',
    },
    Citations: { citationSources: 'Citation', citations: 'Citation' },
    Citation: { endIndex: 'number', license: 'text', startIndex: 'number', title: 'text', uri: 'address' },
    Grounding: {
      groundingChunks: 'Chunk',
      groundingSupports: 'Support',
      retrievalMetadata: 'term',
      searchEntryPoint: 'EntryPoint',
      webSearchQueries: 'text',
    },
    Chunk: { maps: 'Source', retrievedContext: 'Source', web: 'Source' },
    Source: { domain: 'text', placeId: 'id', text: 'text', title: 'text', uri: 'address' },
    Support: { confidenceScores: 'number', groundingChunkIndices: 'number', segment: 'Segment' },
    Segment: { endIndex: 'number', partIndex: 'number', startIndex: 'number', text: 'text' },
    EntryPoint: { renderedContent: 'text', sdkBlob: 'text' },
    UrlContext: { urlMetadata: 'UrlMetadata' },
    UrlMetadata: { retrievedUrl: 'address', urlRetrievalStatus: 'term' },
    Feedback: { blockReason: 'term', blockReasonMessage: 'text', safetyRatings: 'term' },
    ...CONTENTS,
    Content: { parts: 'text | Part', role: 'term' },
    Error: { code: 'number', message: 'text', status: 'term' },
  },
  spellingsOf,
  'Answer',
)

/** Embeddings. https://ai.google.dev/api/embeddings#EmbedContentResponse */
export const GEMINI_EMBED_ANSWER = defineShape(
  {
    Answer: { embedding: 'Vector', embeddings: 'Vector', usageMetadata: 'term of provider' },
    Vector: { shape: 'number', values: 'media' },
  },
  spellingsOf,
  'Answer',
)
