type Body = Readonly<Record<string, unknown>>

/** A chat request as the messages protocol has it: plain text only. */
export function messagesRequest({ model, messages, max_tokens, stream }: Body): object {
  return { model, messages, max_tokens, stream }
}

/** A messages request as the chat protocol has it: plain text only. */
export function chatRequest({ model, messages, max_tokens, stream }: Body): object {
  return {
    model,
    messages,
    max_completion_tokens: max_tokens,
    stream,
    stream_options: { include_usage: true },
  }
}
