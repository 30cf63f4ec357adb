import { defineShape } from '../shape/define-shape.ts'
import { JSON_SCHEMA } from '../shape/json-schema.ts'
import type { Members } from '../shape/vocabulary.ts'
import { spellingsOf } from './field-spelling.ts'

const CONTENTS = {
  Content: { parts: 'text | Part', role: 'role' },
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
  Call: { args: 'arguments', id: 'id', name: 'name', partialArgs: 'arguments' },
  ServerCall: { args: 'arguments', id: 'id', response: 'result', toolType: 'term' },
  FunctionResponse: {
    id: 'id',
    name: 'name',
    parts: 'Part',
    response: 'result',
    scheduling: 'term',
    willContinue: 'number',
  },
  Code: { code: 'arguments', id: 'id', language: 'term', outcome: 'term', output: 'result' },
  Data: { data: 'media', displayName: 'text', fileUri: 'address', mimeType: 'term' },
} as const satisfies Readonly<
  Record<string, Members<'Part' | 'Call' | 'ServerCall' | 'FunctionResponse' | 'Code' | 'Data'>>
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
      generateContentRequest: 'Request',
      generationConfig: 'GenerationConfig',
      labels: 'data',
      model: 'name',
      safetySettings: 'SafetySetting',
      serviceTier: 'term',
      stream: 'number',
      systemInstruction: 'text | Content of system',
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
    ToolConfig: { functionCallingConfig: 'FunctionCalling', retrievalConfig: 'data' },
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
