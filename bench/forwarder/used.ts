/** Usage of all calls so far. */
export const used = { tokens: 0 }
