import type { PromptLevels } from '../prompt-levels.ts'
import { findMedia } from './prompt-media.ts'

/** The prompt of a messages request. */
export const MESSAGES_PROMPT = {
  levels: {
    request: {
      notPrompt: {
        model: 'service',
        stream: 'service',
        max_tokens: 'sampling',
        temperature: 'sampling',
        top_p: 'sampling',
        top_k: 'sampling',
        stop_sequences: 'sampling',
        metadata: 'metadata',
        cache_control: 'service',
        service_tier: 'service',
        inference_geo: 'service',
        speed: 'service',
        thinking: 'service',
        anthropic_version: 'service',
        anthropic_beta: 'service',
      },
      read: {
        system: 'block',
        messages: 'message',
        tools: 'json',
        tool_choice: 'json',
        output_config: 'output',
        output_format: 'json',
      },
    },
    output: { notPrompt: { effort: 'service' }, read: { format: 'json' } },
    message: { notPrompt: { role: 'kind' }, read: { content: 'block' } },
    block: {
      notPrompt: {
        type: 'kind',
        id: 'id',
        tool_use_id: 'id',
        cache_control: 'service',
        signature: 'signature',
        is_error: 'service',
        citations: 'of the answer',
      },
      read: {
        text: 'text',
        thinking: 'text',
        data: 'encrypted',
        encrypted_content: 'encrypted',
        name: 'text',
        input: 'json',
        content: 'block',
        title: 'text',
        context: 'text',
        source: 'source',
      },
      media: findMedia,
    },
    source: {
      notPrompt: { type: 'kind', media_type: 'kind', file_id: 'id' },
      read: { data: 'text', url: 'text', content: 'block' },
    },
  },
  turns: 'messages',
  isFramed: true,
} as const satisfies PromptLevels
