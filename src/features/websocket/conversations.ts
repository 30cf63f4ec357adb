import { ResizableAllocation, type RequestMemory } from '../../limits/request-memory.ts'
import type { PoolShareOwner } from '../../limits/fair-pool.ts'

const MIB = 1_048_576
/** Maximum bytes of the conversations that the sockets of one user remember on this node. */
const USER_BYTES = 64 * MIB
/** Maximum bytes of the conversations of all users. */
const NODE_BYTES = 512 * MIB
/** Memory that a conversation takes in addition to its text, in bytes. */
const OVERHEAD_BYTES = 512

/** What a later turn needs to go on from an answer. */
export interface ConversationState {
  /** Id of the answer. */
  readonly id: string
  /** Items before and in the answer: JSON texts with commas between them. Empty if `store` has them. */
  readonly items: Buffer
  /** Id of the stored response before these items, if there is one. */
  readonly after: string | undefined
  /** JSON text of the instructions that the next turn gets if it has none. */
  readonly instructions: string | undefined
}

/** The conversations that one socket remembers: the last answer of each lane. */
export interface SocketConversations {
  find(id: string): ConversationState | undefined
  /** Remembers an answer as the last one of a lane, if there is memory for it. */
  remember(lane: string | undefined, state: ConversationState): void
  close(): void
}

interface Remembered {
  readonly state: ConversationState
  readonly bytes: number
  readonly socket: OwnConversations
  readonly lane: string | undefined
}

/** The conversations that the sockets of this node remember. The one that was unused for longest is forgotten first. */
export class Conversations {
  readonly #memory: RequestMemory
  /** All conversations, the one that was unused for longest first. */
  readonly #all = new Set<Remembered>()
  readonly #bytesOfUsers = new Map<number, number>()
  #bytes = 0

  constructor(memory: RequestMemory) {
    this.#memory = memory
  }

  /** `maxBytes` is the maximum for the conversations of the socket. */
  ofSocket(owner: PoolShareOwner & { readonly client: number }, maxBytes: number): SocketConversations {
    return new OwnConversations(this, owner.client, new ResizableAllocation(this.#memory, owner), maxBytes)
  }

  /** Adds a conversation, in place of others if necessary. Returns false if there is no memory for it. */
  add(added: Remembered): boolean {
    const { socket, bytes } = added
    const { user } = socket
    if (bytes > Math.min(socket.maxBytes, USER_BYTES)) return false
    while (socket.bytes + bytes > socket.maxBytes) this.#forgetOldest((one) => one.socket === socket)
    while ((this.#bytesOfUsers.get(user) ?? 0) + bytes > USER_BYTES)
      this.#forgetOldest((one) => one.socket.user === user)
    while (this.#bytes + bytes > NODE_BYTES) this.#forgetOldest(() => true)
    while (!socket.allocation.take(bytes))
      if (!this.#forgetOldest((one) => one.socket.user === user)) return false
    this.#all.add(added)
    this.#count(added, bytes)
    return true
  }

  /** Notes that a conversation was used. */
  use(used: Remembered): void {
    if (this.#all.delete(used)) this.#all.add(used)
  }

  remove(removed: Remembered): void {
    if (!this.#all.delete(removed)) return
    removed.socket.allocation.give(removed.bytes)
    this.#count(removed, -removed.bytes)
  }

  #count({ socket }: Remembered, bytes: number): void {
    const ofUser = (this.#bytesOfUsers.get(socket.user) ?? 0) + bytes
    if (ofUser === 0) this.#bytesOfUsers.delete(socket.user)
    else this.#bytesOfUsers.set(socket.user, ofUser)
    socket.bytes += bytes
    this.#bytes += bytes
  }

  #forgetOldest(isMeant: (one: Remembered) => boolean): boolean {
    for (const one of this.#all) {
      if (!isMeant(one)) continue
      one.socket.forget(one)
      return true
    }
    return false
  }
}

class OwnConversations implements SocketConversations {
  readonly user: number
  readonly allocation: ResizableAllocation
  readonly maxBytes: number
  bytes = 0
  readonly #all: Conversations
  readonly #byLane = new Map<string | undefined, Remembered>()

  constructor(all: Conversations, user: number, allocation: ResizableAllocation, maxBytes: number) {
    this.#all = all
    this.user = user
    this.allocation = allocation
    this.maxBytes = maxBytes
  }

  find(id: string): ConversationState | undefined {
    for (const remembered of this.#byLane.values()) {
      if (remembered.state.id !== id) continue
      this.#all.use(remembered)
      return remembered.state
    }
    return undefined
  }

  remember(lane: string | undefined, state: ConversationState): void {
    const before = this.#byLane.get(lane)
    if (before) this.forget(before)
    const bytes = state.items.length + (state.instructions?.length ?? 0) + OVERHEAD_BYTES
    const added = { state, bytes, socket: this, lane }
    if (this.#all.add(added)) this.#byLane.set(lane, added)
  }

  forget(one: Remembered): void {
    this.#all.remove(one)
    if (this.#byLane.get(one.lane) === one) this.#byLane.delete(one.lane)
  }

  close(): void {
    for (const one of this.#byLane.values()) this.#all.remove(one)
    this.#byLane.clear()
  }
}
