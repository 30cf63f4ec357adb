import { type Level, type PromptLevels, SERVICE_OF_OPENAI } from '../prompt-levels.ts'
import { findMedia } from './prompt-media.ts'

const SAMPLING_OF_CHAT = {
  max_tokens: 'sampling',
  max_completion_tokens: 'sampling',
  n: 'sampling',
  stop: 'sampling',
  temperature: 'sampling',
  top_p: 'sampling',
  top_k: 'sampling',
  min_p: 'sampling',
  seed: 'sampling',
  presence_penalty: 'sampling',
  frequency_penalty: 'sampling',
  repetition_penalty: 'sampling',
  logit_bias: 'sampling',
  logprobs: 'sampling',
  top_logprobs: 'sampling',
} as const

/** Levels that chat and completions share. */
const CHAT_PARTS = {
  part: {
    notPrompt: {
      type: 'kind',
      id: 'id',
      index: 'id',
      format: 'kind',
      cache_control: 'service',
      signature: 'signature',
    },
    read: {
      text: 'text',
      refusal: 'text',
      thinking: 'part',
      summary: 'part',
      data: 'encrypted',
      image_url: 'media',
      input_audio: 'media',
      file: 'media',
      video_url: 'media',
    },
    media: findMedia,
  },
  media: {
    notPrompt: { detail: 'service', format: 'kind', file_id: 'id' },
    read: { url: 'text', data: 'text', file_data: 'text', filename: 'text' },
  },
} as const satisfies Record<string, Level>

/** The prompt of a chat request. */
export const CHAT_PROMPT = {
  levels: {
    request: {
      notPrompt: {
        ...SAMPLING_OF_CHAT,
        ...SERVICE_OF_OPENAI,
        reasoning_effort: 'service',
        verbosity: 'service',
        modalities: 'service',
        audio: 'service',
      },
      read: {
        messages: 'message',
        tools: 'json',
        functions: 'json',
        tool_choice: 'json',
        function_call: 'json',
        response_format: 'json',
        prediction: 'message',
      },
    },
    message: {
      notPrompt: { type: 'kind', id: 'id', tool_call_id: 'id', audio: 'id', cache_control: 'service' },
      read: {
        role: 'text',
        name: 'text',
        content: 'part',
        refusal: 'text',
        reasoning_content: 'part',
        reasoning: 'part',
        reasoning_details: 'part',
        tool_calls: 'call',
        function_call: 'function',
      },
    },
    ...CHAT_PARTS,
    call: {
      notPrompt: { type: 'kind', id: 'id', index: 'id' },
      read: { function: 'function', custom: 'function', extra_content: 'signed' },
    },
    function: { notPrompt: {}, read: { name: 'text', arguments: 'text', input: 'text' } },
    signed: { notPrompt: { thought_signature: 'signature' }, read: { google: 'signed' } },
  },
  turns: 'messages',
  isFramed: true,
} as const satisfies PromptLevels

/** The prompt of a completions request. */
export const COMPLETIONS_PROMPT = {
  levels: {
    request: {
      notPrompt: { ...SAMPLING_OF_CHAT, ...SERVICE_OF_OPENAI, best_of: 'sampling', echo: 'service' },
      read: { prompt: 'text', suffix: 'text' },
    },
  },
  turns: 'prompt',
  hasTokenIds: true,
} as const satisfies PromptLevels
