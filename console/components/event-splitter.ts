export interface ServerEvent {
  /** The name of the event; empty if it has none. */
  readonly name: string
  readonly data: string
  /** The id of the event; undefined if it has none. */
  readonly id?: string
}

/** Splits a stream of server-sent events; events without data, such as comments, are omitted. */
export class EventSplitter {
  #rest = ''

  /** Takes a piece of the stream and returns the events that it completes. */
  push(piece: string): readonly ServerEvent[] {
    const blocks = (this.#rest + piece).split(/\r?\n\r?\n/)
    this.#rest = blocks.pop() ?? ''
    return blocks.map(eventOf).filter(({ data }) => data !== '')
  }
}

/** The events of a response as they arrive. */
export async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  const splitter = new EventSplitter()
  for (;;) {
    const piece = await reader?.read()
    if (piece === undefined || piece.done) return
    yield* splitter.push(piece.value)
  }
}

function eventOf(block: string): ServerEvent {
  const id = fieldsOf(block, 'id').at(-1)
  return {
    name: fieldsOf(block, 'event').at(-1) ?? '',
    data: fieldsOf(block, 'data').join('\n'),
    ...(id !== undefined && { id }),
  }
}

function fieldsOf(block: string, name: string): readonly string[] {
  return block
    .split(/\r?\n/)
    .filter((line) => line.startsWith(`${name}:`))
    .map((line) => line.slice(name.length + 1).replace(/^ /, ''))
}
