/** The plural ending of an English noun for this number. */
export const pluralS = (count: number): string => (count === 1 ? '' : 's')
