/** Splits a stream of server-sent events into the `data` of each; comments and other fields are left out. */
export class EventSplitter {
  #rest = ''

  /** Takes a piece of the stream and returns the data of the events that it completes. */
  push(piece: string): readonly string[] {
    const blocks = (this.#rest + piece).split(/\r?\n\r?\n/)
    this.#rest = blocks.pop() ?? ''
    return blocks.map(dataOf).filter((data) => data !== '')
  }
}

function dataOf(block: string): string {
  return block
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length).replace(/^ /, ''))
    .join('\n')
}
