/** What all calls have used. */
export const used = { tokens: 0 }
