/** The ending of a noun with that number. */
export const s = (count: number): string => (count === 1 ? '' : 's')
