import type { Link } from '../ipc/link.ts'
import type { Listener } from '../store/postgres/announcements.ts'
import type { Announcer } from './change-feed.ts'

/** Announces texts to all workers of one machine, through the process that owns their database. */
export class OwnerAnnouncer implements Announcer {
  readonly #link: Link
  readonly #listeners = new Set<Listener>()

  constructor(link: Link) {
    this.#link = link
    link.on('announce', (text: string) => {
      for (const listener of this.#listeners) listener.received(text)
    })
  }

  announce(text: string): Promise<void> {
    this.#link.send('announce', text)
    return Promise.resolve()
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    listener.connected?.()
    return () => void this.#listeners.delete(listener)
  }
}
