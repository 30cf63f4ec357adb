import type { Answer, Question } from './answer.ts'
import { withoutUndefined, type PlaygroundRequest } from './playground-request.ts'

/** The body of a request by the responses protocol, with the conversation as its input. */
export function responsesBody(request: PlaygroundRequest): object {
  const { model, system, thinking, temperature, topP, maxTokens, tools, stream, earlier, question } = request
  return {
    model,
    ...(system !== '' && { instructions: system }),
    input: [
      ...earlier.flatMap((one) => [...questionItems(one.question), ...answerItems(one.answer)]),
      ...questionItems(question),
    ],
    // The conversation is only stored in the browser tab, not by the provider.
    store: false,
    ...withoutUndefined({ temperature, top_p: topP, max_output_tokens: maxTokens }),
    ...(thinking !== 'off' && { reasoning: { effort: thinking, summary: 'auto' } }),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, schema }) => ({
        type: 'function',
        name,
        ...withoutUndefined({ description }),
        parameters: schema,
      })),
    }),
    ...(stream && { stream: true }),
  }
}

function questionItems({ text, images, results }: Question): readonly object[] {
  const outputs = results.map(({ id, text: output }) => ({
    type: 'function_call_output',
    call_id: id,
    output,
  }))
  if (text === '' && images.length === 0) return outputs
  const content = [
    ...(text === '' ? [] : [{ type: 'input_text', text }]),
    ...images.map((url) => ({ type: 'input_image', image_url: url })),
  ]
  return [...outputs, { role: 'user', content }]
}

function answerItems({ content: { text, calls } }: Answer): readonly object[] {
  return [
    ...(text === '' ? [] : [{ role: 'assistant', content: text }]),
    ...calls.map(({ id, name, input }) => ({
      type: 'function_call',
      call_id: id,
      name,
      arguments: input || '{}',
    })),
  ]
}
