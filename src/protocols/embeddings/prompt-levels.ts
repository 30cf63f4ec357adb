import type { PromptLevels } from '../prompt-levels.ts'

/** The prompt of a request for embeddings. */
export const EMBEDDINGS_PROMPT = {
  levels: {
    request: {
      notPrompt: { model: 'service', encoding_format: 'service', dimensions: 'service', user: 'metadata' },
      read: { input: 'text' },
    },
  },
  turns: 'input',
  hasTokenIds: true,
} as const satisfies PromptLevels
