import type { PromptLevels } from '../prompt-levels.ts'
import { findMedia } from './prompt-media.ts'

/** The prompt of a Converse request. */
export const CONVERSE_PROMPT = {
  levels: {
    request: {
      notPrompt: {
        modelId: 'service',
        inferenceConfig: 'sampling',
        guardrailConfig: 'service',
        performanceConfig: 'service',
        serviceTier: 'service',
        requestMetadata: 'metadata',
        additionalModelResponseFieldPaths: 'service',
      },
      read: {
        system: 'block',
        messages: 'message',
        toolConfig: 'json',
        outputConfig: 'json',
        additionalModelRequestFields: 'json',
        promptVariables: 'json',
      },
    },
    message: { notPrompt: { role: 'kind' }, read: { content: 'block' } },
    block: {
      notPrompt: { cachePoint: 'service', toolUseId: 'id', status: 'service', signature: 'signature' },
      read: {
        text: 'text',
        image: 'media',
        document: 'media',
        video: 'media',
        audio: 'media',
        toolUse: 'block',
        toolResult: 'block',
        name: 'text',
        input: 'json',
        content: 'block',
        json: 'json',
        reasoningContent: 'block',
        reasoningText: 'block',
        redactedContent: 'encrypted',
      },
      media: findMedia,
    },
    media: {
      notPrompt: { format: 'kind' },
      read: { name: 'text', context: 'text', source: 'source' },
    },
    source: { notPrompt: { s3Location: 'id' }, read: { bytes: 'text', text: 'text', content: 'block' } },
  },
  turns: 'messages',
  isFramed: true,
} as const satisfies PromptLevels
