import type { PromptLevels } from '../prompt-levels.ts'

/** The prompt of a request to rank documents. */
export const RERANK_PROMPT = {
  levels: {
    request: {
      notPrompt: {
        model: 'service',
        top_n: 'service',
        return_documents: 'service',
        max_chunks_per_doc: 'service',
        max_tokens_per_doc: 'service',
        rank_fields: 'service',
      },
      read: { query: 'text', documents: 'document' },
    },
    document: { notPrompt: {}, read: { text: 'text' } },
  },
  turns: 'documents',
} as const satisfies PromptLevels
