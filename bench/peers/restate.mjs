// Three steps that do nothing, on Restate. The first argument is the port to listen on.
Promise.withResolvers ??= function () { // the SDK wants it; Node has it from version 22 on
  let resolve, reject;
  const promise = new this((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
};
const restate = await import("@restatedev/restate-sdk");

const bench = restate.service({
  name: "bench",
  handlers: {
    workflow: async (context, order) => {
      for (const step of ["reserve", "charge", "notify"]) {
        await context.run(step, () => `${step}-${order.reference}`);
      }
      return { object: "charge", reference: order.reference, amount: order.amount, status: "succeeded" };
    },
  },
});

await restate.serve({ services: [bench], port: Number(process.argv[2]) });
console.log("listens");
