import type { Level, PromptLevels } from '../prompt-levels.ts'
import { camelCase } from './spelling.ts'
import { findMedia } from './prompt-media.ts'

const GEMINI_CONTENTS = {
  content: { notPrompt: { role: 'kind' }, read: { parts: 'part' } },
  part: {
    notPrompt: {
      thought: 'kind',
      thoughtSignature: 'signature',
      videoMetadata: 'service',
      mediaResolution: 'service',
    },
    read: {
      text: 'text',
      functionCall: 'call',
      functionResponse: 'result',
      executableCode: 'code',
      codeExecutionResult: 'code',
      inlineData: 'data',
      fileData: 'data',
    },
    media: findMedia,
  },
  call: { notPrompt: { id: 'id' }, read: { name: 'text', args: 'json', partialArgs: 'json' } },
  result: {
    notPrompt: { id: 'id', scheduling: 'service', willContinue: 'service' },
    read: { name: 'text', response: 'json', parts: 'part' },
  },
  code: {
    notPrompt: { id: 'id', language: 'kind', outcome: 'kind' },
    read: { code: 'text', output: 'text' },
  },
  data: { notPrompt: { mimeType: 'kind' }, read: { data: 'text', fileUri: 'text', displayName: 'text' } },
} as const satisfies Record<string, Level>

/** The prompt of a request that generates content. */
export const GEMINI_PROMPT = {
  levels: {
    request: {
      notPrompt: {
        model: 'service',
        stream: 'service',
        safetySettings: 'service',
        serviceTier: 'service',
        labels: 'metadata',
        cachedContent: 'id',
      },
      read: {
        contents: 'content',
        systemInstruction: 'content',
        tools: 'json',
        toolConfig: 'json',
        generationConfig: 'config',
      },
    },
    config: {
      notPrompt: {
        maxOutputTokens: 'sampling',
        candidateCount: 'sampling',
        temperature: 'sampling',
        topP: 'sampling',
        topK: 'sampling',
        stopSequences: 'sampling',
        seed: 'sampling',
        presencePenalty: 'sampling',
        frequencyPenalty: 'sampling',
        responseLogprobs: 'sampling',
        logprobs: 'sampling',
        responseMimeType: 'service',
        responseModalities: 'service',
        mediaResolution: 'service',
        speechConfig: 'service',
        imageConfig: 'service',
        thinkingConfig: 'service',
      },
      read: { responseSchema: 'json', responseJsonSchema: 'json' },
    },
    ...GEMINI_CONTENTS,
  },
  turns: 'contents',
  isFramed: true,
  spelled: camelCase,
} as const satisfies PromptLevels

/** The prompt of an embeddings request. */
export const GEMINI_EMBED_PROMPT = {
  levels: {
    request: {
      notPrompt: { model: 'service', taskType: 'service', outputDimensionality: 'service' },
      read: { requests: 'request', content: 'content', title: 'text' },
    },
    ...GEMINI_CONTENTS,
  },
  turns: 'content',
  spelled: camelCase,
} as const satisfies PromptLevels
