/** The parts of a call's content, in the order in which they are stored and hashed. */
export const CONTENT_PARTS = ['request_received', 'request_sent', 'answer_received', 'answer_sent'] as const

/** Name of a part of a call's content. */
export type ContentPart = (typeof CONTENT_PARTS)[number]

/** The bytes of each part. A part is absent if it equals the one before it, or if there was none. */
export type ContentBytes = Partial<Record<ContentPart, Buffer>>
