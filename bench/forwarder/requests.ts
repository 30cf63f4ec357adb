type Body = Readonly<Record<string, unknown>>

/** Converts a chat request to the messages dialect: plain text only. */
export function messagesRequest({ model, messages, max_tokens, stream }: Body): object {
  return { model, messages, max_tokens, stream }
}

/** Converts a messages request to the chat dialect: plain text only. */
export function chatRequest({ model, messages, max_tokens, stream }: Body): object {
  return {
    model,
    messages,
    max_completion_tokens: max_tokens,
    stream,
    stream_options: { include_usage: true },
  }
}
