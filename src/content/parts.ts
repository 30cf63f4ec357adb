/** The parts of a call's content, in the order in which they are kept and their digest is made. */
export const CONTENT_PARTS = ['request_received', 'request_sent', 'answer_received', 'answer_sent'] as const

/** Name of a part of a call's content. */
export type ContentPart = (typeof CONTENT_PARTS)[number]

/** The bytes of each part; a part that equals the one before it, or that there was not, is absent. */
export type ContentBytes = Partial<Record<ContentPart, Buffer>>
